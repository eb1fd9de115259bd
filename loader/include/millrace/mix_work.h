// SPDX-License-Identifier: Apache-2.0
// The kernel that erases boxes of a batch's images and mixes the images in pairs, as streams are
// given it before they convert. It is public for those who write a device or a batch transform; a
// trainer sets `Recipe::mix`.
//
// Threads: `run_on_host` may be called on any thread.
// Lifetimes: the memory that a `MixWork` points to must be there until the work is done.
#pragma once

#include <millrace/conversion_work.h>
#include <millrace/detail/export.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace MILLRACE_API millrace {

/// Changes 8-bit images in place. First the boxes of `erases` get their values. Then the image of
/// sample n is mixed with that of sample samples - 1 - n: inside of its box it is the other image,
/// elsewhere (own x weight + other x (256 - weight) + 128) / 256, rounded down. The bits are the
/// same on every device. Sources: Zhong et al., "Random erasing data augmentation", 2017; Zhang et
/// al., "mixup: Beyond empirical risk minimization", 2018; Yun et al., "CutMix", 2019.
struct MixWork {
  static constexpr const char* kernel = "mix";

  /// Where an image is erased: x, y, width, height, then the value of each channel. A width of 0
  /// erases nothing. The box lies inside the image.
  static constexpr std::size_t erase_numbers = 4 + Conversion::max_channels;
  /// How an image is mixed: its weight, 0 to 256, then x, y, width, height. A weight of 256 with a
  /// width of 0 leaves it as it is. The box lies inside the image.
  static constexpr std::size_t mix_numbers = 5;

  /// [samples, height, width, channels]
  std::uint8_t* images = nullptr;
  /// One per sample: the image is flipped horizontally afterwards if it is not 0, and boxes are
  /// those of the flipped image. Null: none is.
  const std::uint8_t* flips = nullptr;
  /// [samples, erase_numbers]; null erases nothing.
  const std::int32_t* erases = nullptr;
  /// [samples, mix_numbers]; null mixes nothing.
  const std::int32_t* mixes = nullptr;
  std::size_t samples = 0;
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
  /// Who shares `run_on_host`; null = nobody. They outlive the work.
  HostWorkers* workers = nullptr;

  /// Does it in host memory: the reference for what devices do.
  void run_on_host() const;
};

}  // namespace millrace
