// SPDX-License-Identifier: Apache-2.0
// Conversion of images on the device, as a trainer requests it. These are plain values, which the
// pipeline copies. Threads: a thread must not change an object that other threads use.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace MILLRACE_API millrace {

/// Order of an image's elements in memory, outermost dimension first.
enum class ImageLayout : std::uint8_t {
  nhwc,  ///< [samples, height, width, channels]
  nchw,  ///< [samples, channels, height, width]
};

/// Conversion of a batch's images on the device (`PipelineOptions::conversion`). Images are copied
/// as uint8, NHWC. The result is that of torchvision's `ToTensor` and `Normalize`: (value / 255 -
/// mean) / std in float32, rounded to nearest even if `dtype` has 16 bits. Every device gives the
/// same bits. `ConversionWork::run_on_host` is the reference.
struct Conversion {
  static constexpr std::size_t max_channels = 4;

  /// The field to convert: uint8, [height, width, channels] with 1 to `max_channels` channels. A
  /// sample may also hold several such images: [images, height, width, channels].
  std::string field = "image";
  /// uint8 (values unchanged), float16, bfloat16 or float32.
  DType dtype = DType::float32;
  ImageLayout layout = ImageLayout::nchw;
  /// `mean` and `std` have one value per channel, for pixel values scaled to 0 to 1. For uint8 only
  /// mean 0 and std 1 are allowed.
  std::array<float, max_channels> mean{0, 0, 0, 0};
  std::array<float, max_channels> std{1, 1, 1, 1};
  /// Numbers of values in `mean` and `std`, as an options file gives them. A number that is not 0
  /// must equal the number of the field's channels. 0 = not checked: the first values of the array
  /// are used.
  std::size_t mean_values = 0;
  std::size_t std_values = 0;

  /// Values for ImageNet, as in torchvision's presets.
  static constexpr std::array<float, max_channels> imagenet_mean{0.485F, 0.456F, 0.406F, 0};
  static constexpr std::array<float, max_channels> imagenet_std{0.229F, 0.224F, 0.225F, 1};
};

}  // namespace millrace
