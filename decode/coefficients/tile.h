// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "coefficients/layout.h"
#include "jpeg/coefficients.h"

namespace millrace::coefficients {

/// Maps each zigzag index to the place of the coefficient in a block that is stored row by row.
inline constexpr std::array<std::uint8_t, block_values> zigzag_places = [] {
  std::array<std::uint8_t, block_values> places{};
  for (std::size_t n = 0; n < places.size(); ++n)
    places[n] = static_cast<std::uint8_t>(jpeg::zigzag_offsets[n] / jpeg::BlockGroup::row_values *
                                              jpeg::block_side +
                                          jpeg::zigzag_offsets[n] % jpeg::BlockGroup::row_values);
  return places;
}();

/// A block's coefficients that are not 0, in the zigzag order.
struct ZigzagBlock {
  /// Bit n is set if the coefficient at zigzag index n is not 0.
  std::uint64_t stored;
  /// Values by zigzag index. The values of other coefficients are unspecified.
  std::array<std::int16_t, block_values> values;

  /// Sets both from 64 coefficients that are stored row by row.
  void take(const std::int16_t* block);
};

/// Number of bytes that packing may write from a tile's begin on.
inline constexpr std::size_t writable_tile_bytes = max_tile_bytes + 64;

/// Writes the tile of 1 to 8 blocks, and returns the address after it. A block is 64 coefficients,
/// row by row.
std::uint8_t* pack_tile(const std::int16_t* blocks, int count, std::uint8_t* to);

/// Does the same in plain code.
std::uint8_t* pack_tile_plain(const std::int16_t* blocks, int count, std::uint8_t* to);

/// The first coefficient of each block of a tile, in groups of blocks (`jpeg::BlockGroup`).
using TileBlocks = std::array<std::int16_t*, tile_blocks>;

/// Number of bytes that expansion may read from a tile's begin on, whatever its content.
inline constexpr std::size_t readable_tile_bytes = max_tile_bytes + 64;

/// A tile's coefficients, each AC coefficient in one byte.
struct alignas(64) TileBytes {
  /// The AC coefficients of each block in the zigzag order, from zigzag index 1 on. The last byte
  /// is 0. For a coefficient of two bytes the byte is `wide_byte`.
  std::array<std::array<std::uint8_t, block_values>, tile_blocks> values;
  std::array<std::int16_t, tile_blocks> dc;
  /// For each block, as bits: the indices of `values` that it stores.
  std::array<std::uint64_t, tile_blocks> stored;
  /// For each block, as bits: the values that are `wide_byte`. Their coefficients follow one
  /// another at `wide_values`.
  std::array<std::uint64_t, tile_blocks> wide;
  const std::uint8_t* wide_values;

  /// Stores the coefficients of two bytes and the DC coefficients. Call it after the coefficients
  /// of one byte are stored.
  void put_wide_and_dc(const TileBlocks& blocks) const {
    const std::uint8_t* value = wide_values;
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      for (std::uint64_t left = wide[block]; left != 0; left &= left - 1) {
        const auto n = static_cast<std::size_t>(std::countr_zero(left)) + 1;
        blocks[block][jpeg::zigzag_offsets[n]] = load<std::int16_t>(value);
        value += sizeof(std::int16_t);
      }
      *blocks[block] = dc[block];
    }
  }
};

/// Expands a tile into `bytes`. Returns the size of the tile in bytes. For a corrupt tile, returns
/// 0 and leaves `bytes` unspecified. `readable_tile_bytes` bytes from `tile` on must be readable.
using BytesExpansion = std::size_t (*)(const std::uint8_t* tile, TileBytes& bytes);

/// Returns the expansion for the instruction set that Highway chooses, which must have vectors.
BytesExpansion bytes_expansion();

/// Expands a tile's eight blocks with the instruction set that Highway chooses. Returns the size of
/// the tile in bytes. For a corrupt tile, returns 0 and leaves the blocks unspecified.
/// `readable_tile_bytes` bytes from `tile` on must be readable.
std::size_t expand_tile(const std::uint8_t* tile, const TileBlocks& blocks);

/// Does the same in plain code.
std::size_t expand_tile_plain(const std::uint8_t* tile, const TileBlocks& blocks);

/// The fields of a tile whose place is known without its AC coefficients.
struct TileParts {
  /// Bit i is set if the coefficient at place i + 1 of the zigzag order is stored.
  std::array<std::uint64_t, tile_blocks> masks;
  /// Number of stored AC coefficients.
  unsigned value_count;
  const std::uint8_t* nibbles;
  const std::uint8_t* escapes;

  /// The least DC coefficient, and fields of `dc_bits` bits: how much larger each block's is.
  std::uint32_t dc_least;
  std::uint32_t dc_bits;
  const std::uint8_t* dc_fields;

  std::int16_t dc_of(unsigned block) const {
    const unsigned bit = block * dc_bits;
    const std::uint32_t field = load<std::uint32_t>(dc_fields + bit / 8) >> bit % 8;
    return static_cast<std::int16_t>(dc_least + (field & ((1U << dc_bits) - 1)));
  }

  /// Returns false for a corrupt tile.
  bool read(const std::uint8_t* tile) {
    dc_least = load<std::uint16_t>(tile);
    dc_bits = tile[2];
    if (dc_bits > max_dc_bits) return false;
    dc_fields = tile + 3;
    const std::uint8_t* next = dc_fields + dc_bits;
    const auto lengths = load<std::uint32_t>(next);
    // A length is at most 8: if its highest bit is set, its other bits are 0.
    if ((lengths >> 3 & (lengths | lengths >> 1 | lengths >> 2) & 0x11111111U) != 0) return false;
    next += sizeof lengths;
    std::uint64_t any = 0;
    value_count = 0;
    for (unsigned block = 0; block < masks.size(); ++block) {
      const unsigned bytes = lengths >> 4 * block & 15;
      const std::uint64_t mask = load<std::uint64_t>(next) & kept_bits[bytes];
      masks[block] = mask;
      any |= mask;
      value_count += static_cast<unsigned>(std::popcount(mask));
      next += bytes;
    }
    nibbles = next;
    escapes = next + (value_count + 1) / 2;
    return any >> (block_values - 1) == 0;
  }

 private:
  static constexpr std::array<std::uint64_t, 9> kept_bits = [] {
    std::array<std::uint64_t, 9> bits{};
    for (unsigned bytes = 1; bytes < bits.size(); ++bytes) bits[bytes] = ~0ULL >> (64 - 8 * bytes);
    return bits;
  }();
};

}  // namespace millrace::coefficients
