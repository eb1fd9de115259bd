// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

/// Returns the level a + factor (b - a), also for factors above 1: Pillow's `Image.blend`, in
/// float32, clamped to 0 .. 255 and rounded down.
inline std::uint8_t blended(int a, int b, float factor) {
  const float made = static_cast<float>(a) + factor * static_cast<float>(b - a);
  return made <= 0     ? std::uint8_t{0}
         : made >= 255 ? std::uint8_t{255}
                       : static_cast<std::uint8_t>(made);
}

/// A blend factor in the form that vector code uses. If `integers` is set, the blend is a + whole d
/// + (share d >> 16) with d = b - a. Clamped, it equals the result of floats for the levels that
/// the slope was made for. Otherwise the blend is in floats.
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
