// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h). Vectors have 16 bytes: the
// largest size in which all instruction sets look up bytes.
#include <array>
#include <cstring>

#include "coefficients/expand_vbmi2.h"
#include "coefficients/look_ups.h"
#include "coefficients/tile.h"
#include "jpeg/avx512.h"

// Disables targets whose vector size is unknown at compile time.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
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
std::size_t expand_bytes(const std::uint8_t*, TileBytes&) { return 0; }

#else

namespace hn = hwy::HWY_NAMESPACE;

using D8 = hn::FixedTag<std::uint8_t, 16>;
using Half8 = hn::FixedTag<std::uint8_t, 8>;
constexpr std::size_t lanes = 16;
/// For each mask of 8 bits: the shuffle that moves the first bytes of a vector to the set bits.
constexpr auto spreads = [] {
  std::array<std::array<std::uint8_t, 8>, 256> all{};
  for (std::size_t bits = 0; bits < all.size(); ++bits) {
    std::uint8_t next = 0;
    for (std::size_t bit = 0; bit < 8; ++bit)
      all[bits][bit] = (bits >> bit & 1) != 0 ? next++ : no_byte;
  }
  return all;
}();

/// Moves the next values to the places that the mask's bits name.
HWY_INLINE void spread(std::uint64_t mask, const std::uint8_t* next, std::uint8_t* to) {
  // Byte n is the number of set bits in the bytes before byte n.
  std::uint64_t before = mask - (mask >> 1 & 0x5555555555555555U);
  before = (before & 0x3333333333333333U) + (before >> 2 & 0x3333333333333333U);
  before = ((before + (before >> 4)) & 0x0F0F0F0F0F0F0F0FU) * 0x0101010101010100U;
  const D8 d8;
  const Half8 half;
  alignas(16) constexpr std::uint8_t upper_half[lanes] = {0, 0, 0, 0, 0, 0, 0, 0,
                                                          8, 8, 8, 8, 8, 8, 8, 8};
  const auto offsets = hn::Load(d8, upper_half);
  for (std::size_t bit = 0; bit < block_values; bit += lanes) {
    const auto values = hn::Combine(d8, hn::LoadU(half, next + (before >> (bit + 8) & 0xFF)),
                                    hn::LoadU(half, next + (before >> bit & 0xFF)));
    const auto places = hn::Combine(d8, hn::LoadU(half, spreads[mask >> (bit + 8) & 0xFF].data()),
                                    hn::LoadU(half, spreads[mask >> bit & 0xFF].data()));
    hn::Store(hn::TableLookupBytesOr0(values, hn::Or(places, offsets)), d8, to + bit);
  }
}

/// Shuffles that make two rows of a block.
constexpr auto row_look_ups = [] {
  std::array<LookUps<4>, 4> all{};
  for (std::size_t pair = 0; pair < all.size(); ++pair) {
    std::array<std::size_t, look_up_bytes> places{};
    for (std::size_t n = 0; n < places.size(); ++n) places[n] = pair * look_up_bytes + n;
    all[pair] = look_ups_of<4>(places);
  }
  return all;
}();

/// Stores a block's coefficients of one byte, and 0 as its DC coefficient.
HWY_INLINE void store_rows(const std::uint8_t* bytes, std::int16_t* block) {
  const D8 d8;
  const hn::FixedTag<std::int16_t, 8> d16;
  const hn::FixedTag<std::int8_t, 8> half;
  for (const LookUps<4>& look_ups : row_look_ups) {
    auto rows = hn::Zero(d8);
    for (std::size_t part = 0; part < 4; ++part)
      rows = hn::Or(rows, hn::TableLookupBytesOr0(hn::Load(d8, bytes + part * lanes),
                                                  hn::Load(d8, look_ups.places[part])));
    const auto values = hn::BitCast(hn::FixedTag<std::int8_t, lanes>(), rows);
    hn::StoreU(hn::PromoteTo(d16, hn::LowerHalf(half, values)), d16, block);
    block += jpeg::BlockGroup::row_values;
    hn::StoreU(hn::PromoteTo(d16, hn::UpperHalf(half, values)), d16, block);
    block += jpeg::BlockGroup::row_values;
  }
}

/// Widens the tile's nibbles to bytes, and replaces escaped ones by their bytes. Returns the end of
/// the escapes.
HWY_INLINE const std::uint8_t* widen_nibbles(const TileParts& parts, std::uint8_t* values,
                                             bool& any_wide) {
  const D8 d8;
  alignas(16) constexpr std::uint8_t values_of[lanes] = {
      wide_byte, 1, 2, 3, 4, 5, 6, 7, 0xF8, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF};
  const auto table = hn::Load(d8, values_of);
  const auto low_bits = hn::Set(d8, 15);
  const auto escaped = hn::Set(d8, wide_byte);
  auto wide = hn::Zero(d8);
  const std::uint8_t* escape = parts.escapes;
  for (std::size_t at = 0; at < parts.value_count; at += 4 * lanes) {
    hn::Vec<D8> bytes[4];
    for (std::size_t n = 0; n < 4; n += 2) {
      const auto both = hn::LoadU(d8, parts.nibbles + (at + n * lanes) / 2);
      const auto low = hn::TableLookupBytes(table, hn::And(both, low_bits));
      const auto high = hn::TableLookupBytes(table, hn::ShiftRight<4>(both));
      bytes[n] = hn::InterleaveLower(d8, low, high);
      bytes[n + 1] = hn::InterleaveUpper(d8, low, high);
    }
    std::uint8_t bits[sizeof(std::uint64_t)];
    for (std::size_t n = 0; n < 4; ++n)
      hn::StoreMaskBits(d8, hn::Eq(bytes[n], escaped), bits + n * lanes / 8);
    auto escapes = load<std::uint64_t>(bits);
    if (parts.value_count - at < 4 * lanes)
      escapes &= (std::uint64_t{1} << (parts.value_count - at)) - 1;
    alignas(16) std::uint8_t own[4 * lanes];
    spread(escapes, escape, own);
    escape += std::popcount(escapes);
    for (std::size_t n = 0; n < 4; ++n) {
      const auto of_escapes = hn::Load(d8, own + n * lanes);
      wide = hn::Or(wide, hn::VecFromMask(d8, hn::Eq(of_escapes, escaped)));
      hn::StoreU(hn::IfThenElse(hn::Eq(bytes[n], escaped), of_escapes, bytes[n]), d8,
                 values + at + n * lanes);
    }
  }
  any_wide = !hn::AllTrue(d8, hn::Eq(wide, hn::Zero(d8)));
  return escape;
}

/// Returns a bit for each byte of a block: whether its coefficient has two bytes.
HWY_INLINE std::uint64_t wide_bits(const std::uint8_t* bytes) {
  const D8 d8;
  std::uint8_t bits[sizeof(std::uint64_t)];
  for (std::size_t at = 0; at < block_values; at += lanes)
    hn::StoreMaskBits(d8, hn::Eq(hn::Load(d8, bytes + at), hn::Set(d8, wide_byte)), bits + at / 8);
  return load<std::uint64_t>(bits);
}

std::size_t expand_bytes(const std::uint8_t* tile, TileBytes& bytes) {
  TileParts parts;
  if (!parts.read(tile)) return 0;
  alignas(16) std::uint8_t values[tile_blocks * block_values + lanes];
  bool any_wide = false;
  bytes.wide_values = widen_nibbles(parts, values, any_wide);
  bytes.stored = parts.masks;
  bytes.wide = {};
  std::size_t wide_count = 0;
  const std::uint8_t* next = values;
  for (std::size_t block = 0; block < tile_blocks; ++block) {
    std::uint8_t* const to = bytes.values[block].data();
    spread(parts.masks[block], next, to);
    next += std::popcount(parts.masks[block]);
    if (any_wide) {
      bytes.wide[block] = wide_bits(to);
      wide_count += static_cast<std::size_t>(std::popcount(bytes.wide[block]));
    }
  }
  for (unsigned block = 0; block < tile_blocks; ++block) bytes.dc[block] = parts.dc_of(block);
  return static_cast<std::size_t>(bytes.wide_values - tile) + wide_count * sizeof(std::int16_t);
}

std::size_t expand(const std::uint8_t* tile, const TileBlocks& blocks) {
  TileBytes bytes;
  const std::size_t size = expand_bytes(tile, bytes);
  if (size == 0) return 0;
  for (std::size_t block = 0; block < blocks.size(); ++block)
    store_rows(bytes.values[block].data(), blocks[block]);
  bytes.put_wide_and_dc(blocks);
  return size;
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::coefficients
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::coefficients {

HWY_EXPORT(expand);
HWY_EXPORT(expand_bytes);

BytesExpansion bytes_expansion() {
  return jpeg::has_vbmi2() ? expand_to_bytes_vbmi2 : &HWY_DYNAMIC_DISPATCH(expand_bytes);
}

std::size_t expand_tile(const std::uint8_t* tile, const TileBlocks& blocks) {
  if (jpeg::has_vbmi2()) return expand_tile_vbmi2(tile, blocks);
  return HWY_DYNAMIC_DISPATCH(expand)(tile, blocks);
}

}  // namespace millrace::coefficients
#endif
