// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coefficients/layout.h"

namespace millrace::coefficients {

/// For each DC field: the indices of its first byte and of the three bytes after it, and its first
/// bit. They depend on the width of a field.
struct DcPlaces {
  alignas(32) std::array<std::uint8_t, 4 * tile_blocks> bytes;
  alignas(32) std::array<std::uint32_t, tile_blocks> bits;
};
inline constexpr auto dc_places = [] {
  std::array<DcPlaces, max_dc_bits + 1> all{};
  for (std::size_t width = 0; width < all.size(); ++width)
    for (std::size_t block = 0; block < tile_blocks; ++block) {
      for (std::size_t byte = 0; byte < 4; ++byte)
        all[width].bytes[4 * block + byte] =
            static_cast<std::uint8_t>((block * width / 8 + byte) % 16);
      all[width].bits[block] = static_cast<std::uint32_t>(block * width % 8);
    }
  return all;
}();

}  // namespace millrace::coefficients
