// SPDX-License-Identifier: Apache-2.0
#include "pixels/slope.h"

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

/// Largest absolute factor with integers: 255 times this, plus all added terms, fits in 16 bits.
constexpr float largest_whole = 100;

int stepped(const Slope& slope, int difference) {
  return slope.whole * difference + ((slope.share * difference) >> 16);
}

/// Searches for integers `whole` and `share` close to the factor for which `holds` returns true.
/// They usually exist: fractions with denominators up to 255 differ by at least 1 / 65025.
template <typename Holds>
Slope found(float factor, const Holds& holds) {
  Slope slope{.factor = factor};
  if (!(std::abs(factor) <= largest_whole)) return slope;
  const float whole = std::nearbyint(factor);
  const auto nearest = static_cast<int>(std::lrint((factor - whole) * 65536.0F));
  slope.whole = static_cast<std::int16_t>(whole);
  for (const int share : {nearest, nearest + 1, nearest - 1}) {
    if (share < INT16_MIN || share > INT16_MAX) continue;
    slope.share = static_cast<std::int16_t>(share);
    if (holds(slope)) {
      slope.integers = true;
      return slope;
    }
  }
  return slope;
}

}  // namespace

Slope slope_from(int a, float factor) {
  return found(factor, [&](const Slope& slope) {
    for (int b = 0; b < 256; ++b)
      if (std::clamp(a + stepped(slope, b - a), 0, 255) != blended(a, b, factor)) return false;
    return true;
  });
}

Slope slope_from_any(float factor) {
  return found(factor, [&](const Slope& slope) {
    for (int difference = -255; difference <= 255; ++difference) {
      const float step = factor * static_cast<float>(difference);
      // With such a step the result is 0 or 255, also with integers: their error is less than 1.
      if (std::abs(step) >= 257) continue;
      const int rounded = static_cast<int>(step);
      const int below_step = rounded - (static_cast<float>(rounded) > step ? 1 : 0);
      if (below_step != stepped(slope, difference)) return false;
      const auto below = static_cast<float>(below_step);
      // A step just below an integer may be rounded up to it when a level is added.
      if (step != below && below + 1 - step <= 0x1p-15F) return false;
    }
    return true;
  });
}

}  // namespace millrace
