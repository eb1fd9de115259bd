// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h).
#include <algorithm>
#include <array>
#include <cstring>

#include "coefficients/dc_places.h"
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

/// Vectors of one or two pieces of 16 bytes. Instruction sets look up bytes within a piece.
using D8 = hn::CappedTag<std::uint8_t, 32>;
using D16 = hn::RepartitionToWide<D8>;
using D64 = hn::Repartition<std::uint64_t, D8>;
using V8 = hn::Vec<D8>;
using Piece8 = hn::FixedTag<std::uint8_t, 16>;
using Half8 = hn::FixedTag<std::uint8_t, 8>;
constexpr std::size_t lanes = hn::MaxLanes(D8());
constexpr std::size_t piece_lanes = 16;
constexpr std::size_t block_pieces = block_values / piece_lanes;

/// Joins the pieces that `piece(0)` and, in longer vectors, `piece(1)` return.
template <class Piece>
HWY_INLINE V8 joined(const Piece& piece) {
  if constexpr (lanes == piece_lanes)
    return piece(0);
  else
    return hn::Combine(D8(), piece(1), piece(0));
}

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

/// Numbers of bits that are set in a tile's masks.
struct SetBits {
  /// In each byte of the masks. A look-up reads the counts of two masks.
  alignas(32) std::uint8_t of_bytes[8 * (tile_blocks + 1)];
  /// For each mask: in its first 16, 32, 48 and 64 bits.
  alignas(32) std::uint16_t up_to[tile_blocks * block_pieces];

  HWY_INLINE explicit SetBits(const std::uint8_t* masks) {
    const D16 d16;
    for (std::size_t at = 0; at < 8 * tile_blocks; at += lanes) {
      const auto counts = hn::PopulationCount(hn::LoadU(D8(), masks + at));
      hn::Store(counts, D8(), of_bytes + at);
      const auto in_words = hn::BitCast(d16, counts);
      auto sums = hn::BitCast(
          D64(), hn::Add(hn::And(in_words, hn::Set(d16, 0xFF)), hn::ShiftRight<8>(in_words)));
      sums = hn::Add(sums, hn::ShiftLeft<16>(sums));
      sums = hn::Add(sums, hn::ShiftLeft<32>(sums));
      hn::Store(hn::BitCast(d16, sums), d16, up_to + at / 2);
    }
  }
};

/// For each byte of a block: the byte of its mask whose bits come before it in its piece. Bytes in
/// the first half of a piece have none.
alignas(64) constexpr auto counts_before = [] {
  std::array<std::uint8_t, block_values> places{};
  for (std::size_t n = 0; n < places.size(); ++n)
    places[n] = n % 16 < 8 ? no_byte : static_cast<std::uint8_t>(n / 8 - 1);
  return places;
}();

/// Moves the next values to the places that the bits of the first `count` masks name, 64 bytes for
/// each mask. Other places become 0. With `joins`, they keep their bytes, and the named ones must
/// be 0 before. Returns the end of the values. Reads up to 15 bytes beyond them.
template <bool joins>
HWY_INLINE const std::uint8_t* spread(const std::array<std::uint64_t, tile_blocks>& masks,
                                      std::size_t count, const std::uint8_t* next,
                                      std::uint8_t* to) {
  const D8 d8;
  const auto* mask = reinterpret_cast<const std::uint8_t*>(masks.data());
  const SetBits set(mask);
  for (std::size_t block = 0; block < count; ++block, mask += 8, to += block_values) {
    const std::uint16_t* const up_to = set.up_to + block_pieces * block;
    const V8 counts = hn::LoadDup128(d8, set.of_bytes + 8 * block);
    for (std::size_t first = 0; first < block_pieces; first += lanes / piece_lanes) {
      const V8 values = joined([&](std::size_t n) HWY_ATTR {
        const std::size_t piece = first + n;
        return hn::LoadU(Piece8(), next + (piece == 0 ? 0 : up_to[piece - 1]));
      });
      const V8 places = joined([&](std::size_t n) HWY_ATTR {
        const std::uint8_t* const bits = mask + 2 * (first + n);
        return hn::Combine(Piece8(), hn::LoadU(Half8(), spreads[bits[1]].data()),
                           hn::LoadU(Half8(), spreads[bits[0]].data()));
      });
      const std::size_t at = piece_lanes * first;
      const V8 before = hn::TableLookupBytesOr0(counts, hn::Load(d8, counts_before.data() + at));
      V8 made = hn::TableLookupBytesOr0(values, hn::Add(places, before));
      if constexpr (joins) made = hn::Or(made, hn::Load(d8, to + at));
      hn::Store(made, d8, to + at);
    }
    next += up_to[block_pieces - 1];
  }
  return next;
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
  const Piece8 d8;
  const hn::FixedTag<std::int16_t, 8> d16;
  const hn::FixedTag<std::int8_t, 8> half;
  for (const LookUps<4>& look_ups : row_look_ups) {
    auto rows = hn::Zero(d8);
    for (std::size_t part = 0; part < 4; ++part)
      rows = hn::Or(rows, hn::TableLookupBytesOr0(hn::Load(d8, bytes + part * piece_lanes),
                                                  hn::Load(d8, look_ups.places[part])));
    const auto values = hn::BitCast(hn::FixedTag<std::int8_t, piece_lanes>(), rows);
    hn::StoreU(hn::PromoteTo(d16, hn::LowerHalf(half, values)), d16, block);
    block += jpeg::BlockGroup::row_values;
    hn::StoreU(hn::PromoteTo(d16, hn::UpperHalf(half, values)), d16, block);
    block += jpeg::BlockGroup::row_values;
  }
}

/// Returns a bit for each byte of a block: whether it is `value`.
HWY_INLINE std::uint64_t bits_of(const std::uint8_t* bytes, std::uint8_t value) {
  const D8 d8;
  std::uint8_t bits[sizeof(std::uint64_t)];
  for (std::size_t at = 0; at < block_values; at += lanes)
    hn::StoreMaskBits(d8, hn::Eq(hn::Load(d8, bytes + at), hn::Set(d8, value)), bits + at / 8);
  return load<std::uint64_t>(bits);
}

/// Widens the tile's nibbles to bytes, and replaces escaped ones by their bytes. Returns the end of
/// the escapes.
HWY_INLINE const std::uint8_t* widen_nibbles(const TileParts& parts, std::uint8_t* values) {
  const D8 d8;
  const D16 d16;
  alignas(16) constexpr std::uint8_t values_of[piece_lanes] = {
      0, 1, 2, 3, 4, 5, 6, 7, 0xF8, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF};
  const V8 table = hn::LoadDup128(d8, values_of);
  std::array<std::uint64_t, tile_blocks> escaped{};
  std::size_t count = 0;
  for (std::size_t at = 0; at < parts.value_count; at += block_values, ++count) {
    for (std::size_t n = at; n < at + block_values; n += lanes) {
      const auto pairs =
          hn::PromoteTo(d16, hn::LoadU(hn::Rebind<std::uint8_t, D16>(), parts.nibbles + n / 2));
      const auto nibbles = hn::And(hn::Or(pairs, hn::ShiftLeft<4>(pairs)), hn::Set(d16, 0x0F0F));
      hn::Store(hn::TableLookupBytes(table, hn::BitCast(d8, nibbles)), d8, values + n);
    }
    escaped[count] = bits_of(values + at, 0);
  }
  if (const std::size_t last = parts.value_count % block_values; last != 0)
    escaped[count - 1] &= (std::uint64_t{1} << last) - 1;
  return spread<true>(escaped, count, parts.escapes, values);
}

/// Returns the number of escapes that stand for a coefficient of two bytes.
HWY_INLINE std::size_t wide_escapes(const std::uint8_t* escapes, const std::uint8_t* end) {
  const D8 d8;
  std::size_t wide = 0;
  for (; escapes < end; escapes += lanes) {
    const auto left = std::min(lanes, static_cast<std::size_t>(end - escapes));
    const auto is_wide = hn::Eq(hn::LoadU(d8, escapes), hn::Set(d8, wide_byte));
    wide += hn::CountTrue(d8, hn::And(hn::FirstN(d8, left), is_wide));
  }
  return wide;
}

/// Unpacks the DC coefficients of the tile's blocks.
HWY_INLINE void take_dc(const TileParts& parts, std::int16_t* dc) {
  const hn::CappedTag<std::uint32_t, tile_blocks> d32;
  const hn::RebindToSigned<decltype(d32)> signed32;
  const hn::Repartition<std::uint8_t, decltype(d32)> d8;
  const hn::Rebind<std::int16_t, decltype(d32)> d16;
  const DcPlaces& places = dc_places[parts.dc_bits];
  const auto bytes = hn::LoadDup128(d8, parts.dc_fields);
  const auto kept = hn::Set(d32, (1U << parts.dc_bits) - 1);
  const auto least = hn::Set(d16, static_cast<std::int16_t>(parts.dc_least));
  for (std::size_t block = 0; block < tile_blocks; block += hn::MaxLanes(d32)) {
    const auto fields = hn::BitCast(
        d32, hn::TableLookupBytes(bytes, hn::Load(d8, places.bytes.data() + 4 * block)));
    const auto above_least =
        hn::And(hn::Shr(fields, hn::Load(d32, places.bits.data() + block)), kept);
    hn::Store(hn::Add(hn::DemoteTo(d16, hn::BitCast(signed32, above_least)), least), d16,
              dc + block);
  }
}

std::size_t expand_bytes(const std::uint8_t* tile, TileBytes& bytes) {
  TileParts parts;
  if (!parts.read(tile)) return 0;
  alignas(64) std::uint8_t values[tile_blocks * block_values + piece_lanes];
  bytes.wide_values = widen_nibbles(parts, values);
  const std::size_t wide_count = wide_escapes(parts.escapes, bytes.wide_values);
  spread<false>(parts.masks, tile_blocks, values, bytes.values[0].data());
  bytes.stored = parts.masks;
  bytes.wide = {};
  if (wide_count != 0)
    for (std::size_t block = 0; block < tile_blocks; ++block)
      bytes.wide[block] = bits_of(bytes.values[block].data(), wide_byte);
  take_dc(parts, bytes.dc.data());
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
