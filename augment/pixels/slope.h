// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

/// Returns the level at the share `factor` of the way from `a` to `b`, also beyond `b`: Pillow's
/// `Image.blend`, in float32, clamped to 0 .. 255 and rounded down.
inline std::uint8_t blended(int a, int b, float factor) {
  const float made = static_cast<float>(a) + factor * static_cast<float>(b - a);
  return made <= 0     ? std::uint8_t{0}
         : made >= 255 ? std::uint8_t{255}
                       : static_cast<std::uint8_t>(made);
}

/// A factor in the form in which vectors blend. If `integers` is set, the blend is a + whole d +
/// (share d >> 16) with d = b - a. It has the same bits as the floats for the levels that the slope
/// was made for. Otherwise the blend is in floats.
struct Slope {
  float factor;
  bool integers = false;
  std::int16_t whole = 0;
  std::int16_t share = 0;
};

/// Returns the slope for blends of the level `a` with any other level.
Slope slope_from(int a, float factor);
/// Returns the slope for blends of any two levels.
Slope slope_from_any(float factor);

}  // namespace millrace
