// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pixels/slope.h"

namespace millrace {

/// What is done to each pixel by itself.
struct Step {
  enum class Kind { level, grey, hue } kind;
  /// `level` blends all channels with `base`, `grey` with the pixel's luma.
  Slope slope{.factor = 0};
  int base = 0;
  /// `hue` adds that to the hue of 8 bits.
  std::uint8_t shift = 0;
};

/// The luma of `Image.convert("L")`, ITU-R 601-2.
inline int luma(int red, int green, int blue) {
  return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
}

/// Adds a shift to a pixel's hue, by way of Pillow's HSV. Source: rgb2hsv_row and hsv2rgb in
/// Pillow's Convert.c.
void shift_hue(std::uint8_t* pixel, std::uint8_t shift);

/// A pass over pixels, of which another one may follow.
struct Pass {
  /// The pixels are as a pass with `sums` left them.
  bool from_planes = false;
  /// Return the sum of the luma of what is made, and leave the pixels for another pass: groups of
  /// them, as many as a vector has bytes, as planes.
  bool sums = false;
};
/// Takes the steps at each of `count` pixels. Without `sums` the result means nothing.
std::uint64_t take_steps(std::uint8_t* pixels, std::size_t count, std::span<const Step> steps,
                         Pass pass);

/// One row of `adjust_sharpness`: `made` of the rows above, at and below, of `width` >= 3 pixels.
/// `made` is none of the first two. `sums` has room for 3 x `width` numbers.
void sharpen_row(const std::uint8_t* above, const std::uint8_t* at, const std::uint8_t* below,
                 std::uint8_t* made, std::uint16_t* sums, std::size_t width, const Slope& slope);

}  // namespace millrace
