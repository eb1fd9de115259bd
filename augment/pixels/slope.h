// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

/// The level `factor` of the way from `a` to `b`, and beyond: Pillow's `Image.blend`, in float32,
/// cut to 0 .. 255 and rounded down.
inline std::uint8_t blended(int a, int b, float factor) {
  const float made = static_cast<float>(a) + factor * static_cast<float>(b - a);
  return made <= 0     ? std::uint8_t{0}
         : made >= 255 ? std::uint8_t{255}
                       : static_cast<std::uint8_t>(made);
}

/// How vectors blend by a factor: where `integers` is set, as a + whole d + (share d >> 16) with
/// d = b - a, which has the same bits as the floats wherever it may be used, and else in floats.
struct Slope {
  float factor;
  bool integers = false;
  std::int16_t whole = 0;
  std::int16_t share = 0;
};

/// For blends of the level `a` with any other one.
Slope slope_from(int a, float factor);
/// For blends of any two levels.
Slope slope_from_any(float factor);

}  // namespace millrace
