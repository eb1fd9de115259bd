// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h). Vectors have 16 bytes: the
// largest size in which all instruction sets look up bytes.
#include <array>
#include <cstring>

#include "coefficients/expand_vbmi2.h"
#include "coefficients/tile.h"
#include "jpeg/avx512.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "coefficients/expand.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace millrace::coefficients {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

std::size_t expand(const std::uint8_t* tile, const TileBlocks& blocks) {
  return expand_tile_plain(tile, blocks);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using D8 = hn::FixedTag<std::uint8_t, 16>;
using Half8 = hn::FixedTag<std::uint8_t, 8>;
constexpr std::size_t lanes = 16;
/// The shuffle index that makes a byte 0.
constexpr std::uint8_t none = 0x80;

/// For each mask of 8 bits: the shuffle that moves the first bytes of a vector to the set bits.
constexpr auto spreads = [] {
  std::array<std::array<std::uint8_t, 8>, 256> all{};
  for (std::size_t bits = 0; bits < all.size(); ++bits) {
    std::uint8_t next = 0;
    for (std::size_t bit = 0; bit < 8; ++bit)
      all[bits][bit] = (bits >> bit & 1) != 0 ? next++ : none;
  }
  return all;
}();

/// Shuffles that move 16 coefficients from the zigzag order to two rows of a block.
struct RowLookUps {
  alignas(16) std::uint8_t places[4][block_values / lanes][lanes];
};
constexpr RowLookUps row_look_ups = [] {
  RowLookUps look_ups{};
  for (auto& of_pair : look_ups.places)
    for (auto& of_part : of_pair)
      for (std::uint8_t& place : of_part) place = none;
  for (std::size_t n = 0; n < block_values; ++n) {
    const std::size_t place = zigzag_places[n];
    look_ups.places[place / lanes][n / lanes][place % lanes] = static_cast<std::uint8_t>(n % lanes);
  }
  return look_ups;
}();

/// Widens all nibbles to bytes. An escaped nibble becomes `wide_byte`.
HWY_INLINE void widen_nibbles(const std::uint8_t* nibbles, const std::uint8_t* end,
                              std::uint8_t* to) {
  const D8 d8;
  alignas(16) constexpr std::uint8_t values[lanes] = {
      wide_byte, 1, 2, 3, 4, 5, 6, 7, 0xF8, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF};
  const auto table = hn::Load(d8, values);
  const auto low_bits = hn::Set(d8, 15);
  for (; nibbles < end; nibbles += lanes, to += 2 * lanes) {
    const auto both = hn::LoadU(d8, nibbles);
    const auto low = hn::TableLookupBytes(table, hn::And(both, low_bits));
    const auto high = hn::TableLookupBytes(table, hn::ShiftRight<4>(both));
    hn::StoreU(hn::InterleaveLower(d8, low, high), d8, to);
    hn::StoreU(hn::InterleaveUpper(d8, low, high), d8, to + lanes);
  }
}

/// Stores a block's coefficients from bytes in the zigzag order. Only the first `parts` vectors of
/// these bytes have coefficients.
HWY_INLINE void store_rows(const std::uint8_t* zigzag, std::size_t parts, std::int16_t* block) {
  const D8 d8;
  const hn::FixedTag<std::int16_t, 8> d16;
  const hn::FixedTag<std::int8_t, 8> half;
  for (std::size_t pair = 0; pair < 4; ++pair, block += 2 * jpeg::BlockGroup::row_values) {
    auto rows = hn::Zero(d8);
    for (std::size_t part = 0; part < parts; ++part)
      rows = hn::Or(rows, hn::TableLookupBytesOr0(hn::Load(d8, zigzag + part * lanes),
                                                  hn::Load(d8, row_look_ups.places[pair][part])));
    const auto bytes = hn::BitCast(hn::FixedTag<std::int8_t, lanes>(), rows);
    hn::StoreU(hn::PromoteTo(d16, hn::LowerHalf(half, bytes)), d16, block);
    hn::StoreU(hn::PromoteTo(d16, hn::UpperHalf(half, bytes)), d16,
               block + jpeg::BlockGroup::row_values);
  }
}

std::size_t expand(const std::uint8_t* tile, const TileBlocks& blocks) {
  TileParts parts;
  if (!parts.read(tile)) return 0;
  alignas(16) std::uint8_t values[tile_blocks * block_values + 2 * lanes];
  widen_nibbles(parts.nibbles, parts.escapes, values);
  std::int16_t* wide[tile_blocks * (block_values - 1)];
  std::size_t wide_count = 0;
  const std::uint8_t* next = values;
  const std::uint8_t* escape = parts.escapes;
  const D8 d8;
  const Half8 half;
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    // Byte n is the coefficient at zigzag index n. Byte 0, the DC coefficient, stays 0 here.
    alignas(16) std::uint8_t zigzag[block_values + lanes];
    const std::uint64_t mask = parts.masks[block];
    const auto bytes = (static_cast<std::size_t>(std::bit_width(mask)) + 7) / 8;
    for (std::size_t at = 0; at <= bytes * 8; at += lanes) hn::Store(hn::Zero(d8), d8, zigzag + at);
    for (std::size_t byte = 0; byte < bytes; ++byte) {
      const std::size_t bits = mask >> 8 * byte & 0xFF;
      hn::StoreU(
          hn::TableLookupBytesOr0(hn::LoadU(half, next), hn::LoadU(half, spreads[bits].data())),
          half, zigzag + 1 + 8 * byte);
      next += std::popcount(bits);
    }
    const std::size_t used = bytes / 2 + 1;
    for (std::size_t part = 0; part < used && part < block_values / lanes; ++part) {
      std::uint8_t* const from = zigzag + part * lanes;
      const auto is_escaped = hn::Eq(hn::Load(d8, from), hn::Set(d8, wide_byte));
      if (hn::AllFalse(d8, is_escaped)) continue;
      std::uint8_t escaped[8] = {};
      hn::StoreMaskBits(d8, is_escaped, escaped);
      for (auto left = load<std::uint16_t>(escaped); left != 0;
           left = static_cast<std::uint16_t>(left & (left - 1))) {
        const auto n = static_cast<std::size_t>(std::countr_zero(left));
        if (*escape == wide_byte)
          wide[wide_count++] = blocks[block] + jpeg::zigzag_offsets[part * lanes + n];
        from[n] = *escape++;
      }
    }
    store_rows(zigzag, std::min(used, block_values / lanes), blocks[block]);
  }
  for (std::size_t n = 0; n < wide_count; ++n, escape += sizeof(std::int16_t))
    *wide[n] = load<std::int16_t>(escape);
  parts.put_dc(blocks);
  return static_cast<std::size_t>(escape - tile);
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::coefficients
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::coefficients {

HWY_EXPORT(expand);

std::size_t expand_tile(const std::uint8_t* tile, const TileBlocks& blocks) {
  if (jpeg::has_vbmi2()) return expand_tile_vbmi2(tile, blocks);
  return HWY_DYNAMIC_DISPATCH(expand)(tile, blocks);
}

}  // namespace millrace::coefficients
#endif
