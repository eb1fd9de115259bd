// SPDX-License-Identifier: Apache-2.0
#include "coefficients/tile.h"

#include <algorithm>
#include <cstring>

#include "coefficients/pack_vbmi2.h"
#include "jpeg/avx512.h"
#include "jpeg/coefficients.h"

namespace millrace::coefficients {
namespace {

/// For each row of a block: maps the set bits of its 8 places to bits at their zigzag indices.
constexpr auto places_of_rows = [] {
  std::array<std::array<std::uint64_t, 256>, jpeg::block_side> all{};
  for (std::size_t n = 0; n < zigzag_places.size(); ++n)
    for (std::size_t bits = 0; bits < 256; ++bits)
      if ((bits >> zigzag_places[n] % 8 & 1) != 0)
        all[zigzag_places[n] / 8][bits] |= std::uint64_t{1} << n;
  return all;
}();

/// Writes the least DC coefficient, the width and the fields. Returns the next byte.
std::uint8_t* pack_dc(const std::int16_t* blocks, int count, std::uint8_t* to) {
  std::array<int, tile_blocks> values{};
  for (int block = 0; block < tile_blocks; ++block)
    values[static_cast<std::size_t>(block)] =
        blocks[static_cast<std::size_t>(std::min(block, count - 1)) * block_values];
  const auto [least, most] = std::ranges::minmax(values);
  const auto bits = static_cast<unsigned>(std::bit_width(static_cast<unsigned>(most - least)));
  store(static_cast<std::int16_t>(least), to);
  to[2] = static_cast<std::uint8_t>(bits);
  to += 3;
  std::uint64_t held = 0;
  unsigned held_bits = 0;
  for (const int value : values) {
    held |= static_cast<std::uint64_t>(value - least) << held_bits;
    for (held_bits += bits; held_bits >= 8; held_bits -= 8, held >>= 8)
      *to++ = static_cast<std::uint8_t>(held);
  }
  return to;
}

/// Returns bits: bit n is set if the coefficient at zigzag index n is not 0.
std::uint64_t stored_places(const std::int16_t* block) {
  std::array<std::uint8_t, block_values> is_stored;
  for (std::size_t n = 0; n < is_stored.size(); ++n) is_stored[n] = block[n] != 0 ? 1 : 0;
  std::uint64_t places = 0;
  for (std::size_t row = 0; row < places_of_rows.size(); ++row) {
    // The product's highest byte has the lowest bits of the eight bytes.
    const auto bytes = load<std::uint64_t>(is_stored.data() + 8 * row);
    places |= places_of_rows[row][bytes * 0x0102040810204080U >> 56];
  }
  return places;
}

/// Writes all parts of a tile after its DC coefficients. Returns the next byte.
std::uint8_t* pack_ac(const std::int16_t* blocks, int count, std::uint8_t* to) {
  std::array<std::int16_t, std::size_t{tile_blocks} * (block_values - 1)> values;
  std::size_t value_count = 0;
  std::uint8_t* mask_to = to + sizeof(std::uint32_t);
  std::uint32_t lengths = 0;
  for (int n = 0; n < count; ++n, blocks += block_values) {
    const std::uint64_t mask = stored_places(blocks) >> 1;
    const auto bytes = (static_cast<unsigned>(std::bit_width(mask)) + 7) / 8;
    lengths |= bytes << 4 * n;
    store(mask, mask_to);
    mask_to += bytes;
    for (std::uint64_t left = mask; left != 0; left &= left - 1)
      values[value_count++] =
          blocks[zigzag_places[static_cast<std::size_t>(std::countr_zero(left)) + 1]];
  }
  store(lengths, to);
  std::uint8_t* const nibbles = mask_to;
  std::uint8_t* escapes = nibbles + (value_count + 1) / 2;
  std::fill(nibbles, escapes, std::uint8_t{0});
  // One element more than a tile needs, since each value is written before it is known to count.
  std::array<std::int16_t, std::size_t{tile_blocks} * (block_values - 1) + 1> wide;
  std::size_t wide_count = 0;
  for (std::size_t n = 0; n < value_count; ++n) {
    // Has no branches, since a processor cannot predict which values have bytes of their own.
    const int value = values[n];
    const bool is_long = value < min_nibble || value > max_nibble;
    const bool is_wide = value < min_byte || value > max_byte;
    const int nibble = is_long ? 0 : value & 15;
    nibbles[n / 2] = static_cast<std::uint8_t>(nibbles[n / 2] | nibble << n % 2 * 4);
    *escapes = is_wide ? wide_byte : static_cast<std::uint8_t>(value);
    escapes += is_long ? 1 : 0;
    wide[wide_count] = values[n];
    wide_count += is_wide ? 1 : 0;
  }
  std::memcpy(escapes, wide.data(), wide_count * sizeof wide[0]);
  return escapes + wide_count * sizeof wide[0];
}

}  // namespace

void ZigzagBlock::take(const std::int16_t* block) {
#ifdef __x86_64__
  if (jpeg::has_vbmi2()) return take_zigzag_vbmi2(block, *this);
#endif
  stored = stored_places(block);
  for (std::uint64_t left = stored; left != 0; left &= left - 1) {
    const auto n = static_cast<std::size_t>(std::countr_zero(left));
    values[n] = block[zigzag_places[n]];
  }
}

std::uint8_t* pack_tile_plain(const std::int16_t* blocks, int count, std::uint8_t* to) {
  return pack_ac(blocks, count, pack_dc(blocks, count, to));
}

std::uint8_t* pack_tile(const std::int16_t* blocks, int count, std::uint8_t* to) {
#ifdef __x86_64__
  if (jpeg::has_vbmi2()) return pack_ac_vbmi2(blocks, count, pack_dc(blocks, count, to));
#endif
  return pack_tile_plain(blocks, count, to);
}

std::size_t expand_tile_plain(const std::uint8_t* tile, const TileBlocks& blocks) {
  TileParts parts;
  if (!parts.read(tile)) return 0;
  for (std::int16_t* block : blocks)
    for (int row = 0; row < jpeg::block_side; ++row)
      std::fill_n(block + row * jpeg::BlockGroup::row_values, jpeg::block_side, std::int16_t{0});

  std::array<std::int16_t*, std::size_t{tile_blocks} * (block_values - 1)> wide;
  std::size_t wide_count = 0;
  const std::uint8_t* next = parts.escapes;
  std::size_t place = 0;
  for (std::size_t block = 0; block < blocks.size(); ++block)
    for (std::uint64_t mask = parts.masks[block]; mask != 0; mask &= mask - 1, ++place) {
      const auto n = static_cast<std::size_t>(std::countr_zero(mask)) + 1;
      std::int16_t& value = blocks[block][jpeg::zigzag_offsets[n]];
      const int nibble = parts.nibbles[place / 2] >> place % 2 * 4 & 15;
      if (nibble != 0) {
        value = static_cast<std::int16_t>(nibble < 8 ? nibble : nibble - 16);
      } else {
        const int byte = *next++;  // in two's complement
        value = static_cast<std::int16_t>(byte < 128 ? byte : byte - 256);
        if (byte == wide_byte) wide[wide_count++] = &value;
      }
    }
  for (std::size_t n = 0; n < wide_count; ++n, next += sizeof(std::int16_t))
    *wide[n] = load<std::int16_t>(next);
  for (unsigned block = 0; block < blocks.size(); ++block) *blocks[block] = parts.dc_of(block);
  return static_cast<std::size_t>(next - tile);
}

}  // namespace millrace::coefficients
