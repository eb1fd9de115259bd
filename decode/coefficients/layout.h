// SPDX-License-Identifier: Apache-2.0
//
// Constants of the record form `coefficients`. FORMAT.md specifies the form byte by byte.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millrace::coefficients {

inline constexpr std::array<std::uint8_t, 8> magic = {0x8A, 'J', 'C', 'F', '\r', '\n', 0x1A, '\n'};
inline constexpr std::uint8_t version = 1;

/// Offsets in the header.
inline constexpr std::size_t version_at = 8;
inline constexpr std::size_t components_at = 9;
inline constexpr std::size_t across_at = 10;
inline constexpr std::size_t down_at = 11;
inline constexpr std::size_t width_at = 12;
inline constexpr std::size_t height_at = 14;
inline constexpr std::size_t padding_at = 16;
inline constexpr std::size_t file_bytes_at = 20;
inline constexpr std::size_t file_checksum_at = 24;
inline constexpr std::size_t header_bytes = 32;
/// Size of the checksum at the record's end.
inline constexpr std::size_t checksum_bytes = 8;

inline constexpr std::size_t block_values = 64;
inline constexpr int tile_blocks = 8;
inline constexpr unsigned max_dc_bits = 13;
/// Bytes of a tile: those of its fixed-size fields, and those of the largest tile.
inline constexpr std::size_t fixed_tile_bytes = 7;
inline constexpr std::size_t max_tile_bytes =
    fixed_tile_bytes + max_dc_bits + tile_blocks * (sizeof(std::uint64_t) + (block_values - 1)) +
    tile_blocks * (block_values - 1) / 2 + sizeof(std::int16_t) * tile_blocks * (block_values - 1);
/// Tile offsets have 2 bytes in rows of at most this many bytes, and 4 bytes in longer rows.
inline constexpr std::size_t longest_short_row = 0xFFFF;

/// Ranges of the AC coefficients that are stored in a nibble, and in a byte.
inline constexpr int min_nibble = -8, max_nibble = 7;
inline constexpr int min_byte = -127, max_byte = 127;
/// Marks an AC coefficient of two bytes among those of one byte.
inline constexpr std::uint8_t wide_byte = 0x80;

static_assert(std::endian::native == std::endian::little, "numbers are stored as they are here");

template <typename Number>
Number load(const std::uint8_t* from) {
  Number number;
  std::memcpy(&number, from, sizeof number);
  return number;
}
template <typename Number>
void store(Number number, std::uint8_t* to) {
  std::memcpy(to, &number, sizeof number);
}

}  // namespace millrace::coefficients
