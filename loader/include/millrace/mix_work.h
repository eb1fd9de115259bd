// SPDX-License-Identifier: Apache-2.0
// A kernel that erases boxes of a batch's images and mixes the images in pairs. Pipelines launch it
// before the conversion. It is for code that implements `Device` or a batch transform; trainers set
// `Recipe::mix` instead.
//
// Threads: `run_on_host` may be called on any thread.
// Lifetimes: the memory that a `MixWork` points to must stay valid until the work is done.
#pragma once

#include <millrace/conversion_work.h>
#include <millrace/detail/export.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace MILLRACE_API millrace {

/// Arguments of a kernel that changes 8-bit images in place. First the boxes of `erases` are filled
/// with their values. Then image n is mixed with image `samples` - 1 - n. Inside the box of its
/// mix, an image is replaced by the other one. Elsewhere it becomes (own x weight + other x (256 -
/// weight) + 128) / 256, rounded down. The bits are the same on every device. Sources: Zhong et
/// al., "Random erasing data augmentation", 2017; Zhang et al., "mixup: Beyond empirical risk
/// minimization", 2018; Yun et al., "CutMix", 2019.
struct MixWork {
  static constexpr const char* kernel = "mix";

  /// Numbers that describe an erased box: x, y, width, height, then the value of each channel. A
  /// width of 0 erases nothing. The box lies inside the image.
  static constexpr std::size_t erase_numbers = 4 + Conversion::max_channels;
  /// Numbers that describe a mix: the image's own weight, 0 to 256, then x, y, width, height of the
  /// box. A weight of 256 with a width of 0 leaves the image unchanged. The box lies inside the
  /// image.
  static constexpr std::size_t mix_numbers = 5;

  /// [samples, height, width, channels]
  std::uint8_t* images = nullptr;
  /// One value per sample: if it is not 0, the image is flipped horizontally later, and its boxes
  /// refer to the flipped image. Null = no flips.
  const std::uint8_t* flips = nullptr;
  /// [samples, erase_numbers]; null erases nothing.
  const std::int32_t* erases = nullptr;
  /// [samples, mix_numbers]; null mixes nothing.
  const std::int32_t* mixes = nullptr;
  std::size_t samples = 0;
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
  /// Threads that help with `run_on_host`; null = the calling thread works alone. They must outlive
  /// the work.
  HostWorkers* workers = nullptr;

  /// Does the work in host memory: the reference for all devices.
  void run_on_host() const;
};

}  // namespace millrace
