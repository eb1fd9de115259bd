// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace millrace {

/// Converts a row of CMYK as Adobe stores it (inverted) to RGB, rounded as in Pillow, in place.
inline void cmyk_to_rgb(std::uint8_t* row, unsigned width) {
  const std::uint8_t* from = row;
  for (unsigned x = 0; x < width; ++x, from += 4, row += 3) {
    const int light = from[3];
    for (int channel = 0; channel < 3; ++channel) {
      const int product = (255 - from[channel]) * light + 128;
      row[channel] =
          static_cast<std::uint8_t>(std::max(0, light - ((product + (product >> 8)) >> 8)));
    }
  }
}

}  // namespace millrace
