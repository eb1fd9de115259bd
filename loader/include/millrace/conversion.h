// SPDX-License-Identifier: Apache-2.0
// What a trainer asks the device to make of its images: plain values, copied into the pipeline that
// they are given to. Any thread may use its own.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace MILLRACE_API millrace {

/// In which order an image's elements lie, outermost first.
enum class ImageLayout : std::uint8_t {
  nhwc,  ///< [samples, height, width, channels]
  nchw,  ///< [samples, channels, height, width]
};

/// What the device makes of the images of a batch, which travel as uint8, NHWC:
/// `PipelineOptions::conversion`. As torchvision's `ToTensor` and `Normalize`: (value / 255 - mean)
/// / std in float32, rounded to nearest even where `dtype` has 16 bits. The bits are the same on
/// every device (`ConversionWork::run_on_host`).
struct Conversion {
  static constexpr std::size_t max_channels = 4;

  /// The field that is converted: uint8, [height, width, channels] with 1 to `max_channels`
  /// channels, or several such images of each sample, [images, height, width, channels].
  std::string field = "image";
  /// uint8 (the values as they are), float16, bfloat16 or float32.
  DType dtype = DType::float32;
  ImageLayout layout = ImageLayout::nchw;
  /// Per channel, of values from 0 to 1. Only 0 and 1 for uint8.
  std::array<float, max_channels> mean{0, 0, 0, 0};
  std::array<float, max_channels> std{1, 1, 1, 1};

  /// Of ImageNet, as torchvision's presets have them.
  static constexpr std::array<float, max_channels> imagenet_mean{0.485F, 0.456F, 0.406F, 0};
  static constexpr std::array<float, max_channels> imagenet_std{0.229F, 0.224F, 0.225F, 1};
};

}  // namespace millrace
