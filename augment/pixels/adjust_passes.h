// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pixels/slope.h"

namespace millrace {

/// A change of each pixel independently of the others.
struct Step {
  enum class Kind { level, grey, hue } kind;
  /// `level` blends all channels with `base`; `grey` blends them with the pixel's luma.
  Slope slope{.factor = 0};
  int base = 0;
  /// The number that `hue` adds to the 8-bit hue.
  std::uint8_t shift = 0;
};

/// Returns the luma of `Image.convert("L")`, ITU-R 601-2.
inline int luma(int red, int green, int blue) {
  return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
}

/// Adds a shift to a pixel's hue in Pillow's HSV. Source: rgb2hsv_row and hsv2rgb in Pillow's
/// Convert.c.
void shift_hue(std::uint8_t* pixel, std::uint8_t shift);

/// The kind of a pass over pixels. Another pass may follow.
struct Pass {
  /// Whether the pixels are planes, as a pass with `sums` left them.
  bool from_planes = false;
  /// Whether the pass returns the sum of the new pixels' luma and leaves the pixels as planes for
  /// another pass. A plane has one channel of a group of pixels, as many as a vector has bytes.
  bool sums = false;
};
/// Applies the steps to each of `count` pixels. With `Pass::sums` it returns the sum of the luma;
/// otherwise the returned value is unspecified.
std::uint64_t take_steps(std::uint8_t* pixels, std::size_t count, std::span<const Step> steps,
                         Pass pass);

/// Makes one row of `adjust_sharpness` from the rows above, at and below it, of `width` >= 3
/// pixels. `made` must differ from `above` and `at`. `sums` has room for 3 x `width` numbers.
void sharpen_row(const std::uint8_t* above, const std::uint8_t* at, const std::uint8_t* below,
                 std::uint8_t* made, std::uint16_t* sums, std::size_t width, const Slope& slope);

}  // namespace millrace
