// SPDX-License-Identifier: Apache-2.0
//
// Shuffles that take coefficients from `TileBytes`. They have 16 bytes, since all instruction sets
// can look up among so many.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coefficients/tile.h"

namespace millrace::coefficients {

inline constexpr std::size_t look_up_bytes = 16;
/// The shuffle index that makes a byte 0.
inline constexpr std::uint8_t no_byte = 0x80;

/// Shuffles of the first `parts` parts of a block of `TileBytes`. The joined results of all parts
/// are 16 bytes.
template <std::size_t parts>
struct LookUps {
  alignas(look_up_bytes) std::uint8_t places[parts][look_up_bytes];
};

/// Returns the shuffles that make 16 coefficients, which are named by their places in a block that
/// is stored row by row. The DC coefficient becomes 0.
template <std::size_t parts>
constexpr LookUps<parts> look_ups_of(const std::array<std::size_t, look_up_bytes>& coefficients) {
  LookUps<parts> look_ups{};
  for (auto& of_part : look_ups.places)
    for (std::uint8_t& place : of_part) place = no_byte;
  for (std::size_t n = 0; n < look_up_bytes; ++n)
    for (std::size_t byte = 0; byte < parts * look_up_bytes; ++byte)
      if (byte + 1 < block_values && zigzag_places[byte + 1] == coefficients[n])
        look_ups.places[byte / look_up_bytes][n] = static_cast<std::uint8_t>(byte % look_up_bytes);
  return look_ups;
}

}  // namespace millrace::coefficients
