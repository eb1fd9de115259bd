// SPDX-License-Identifier: Apache-2.0
#include "coefficients/expand_vbmi2.h"

#ifdef __x86_64__

#include <array>
#include <bit>

#include "coefficients/dc_places.h"
#include "jpeg/avx512.h"

namespace millrace::coefficients {
namespace {

using Bytes = std::array<std::uint8_t, 64>;

/// Shuffle after which each 8 bytes begin with the 4 bytes that hold their 8 nibbles, and the byte
/// after these.
alignas(64) constexpr Bytes nibble_bytes = [] {
  Bytes places{};
  for (std::size_t n = 0; n < places.size(); ++n)
    places[n] = static_cast<std::uint8_t>(4 * (n / 8) + n % 8);
  return places;
}();
/// For each nibble, the index of its first bit in these 8 bytes. The first table is for a first
/// nibble with an even number, the second table for an odd number.
alignas(64) constexpr std::array<Bytes, 2> nibble_bits = [] {
  std::array<Bytes, 2> bits{};
  for (std::size_t odd = 0; odd < 2; ++odd)
    for (std::size_t n = 0; n < bits[odd].size(); ++n)
      bits[odd][n] = static_cast<std::uint8_t>(4 * (n % 8 + odd));
  return bits;
}();
/// For each coefficient of a block, row by row: its place in a vector that begins with zigzag index
/// 1. The vector's last byte is always 0, and stands for the DC coefficient.
alignas(64) constexpr Bytes row_places = [] {
  Bytes places{};
  for (std::size_t n = 0; n < places.size(); ++n)
    places[zigzag_places[n]] = static_cast<std::uint8_t>((n + block_values - 1) % block_values);
  return places;
}();

MILLRACE_VBMI2 inline void store_rows(__m512i rows, std::int16_t* block) {
  const __m512i upper = _mm512_cvtepi8_epi16(_mm512_castsi512_si256(rows));
  const __m512i lower = _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(rows, 1));
  constexpr int step = jpeg::BlockGroup::row_values;
  auto* const to = reinterpret_cast<__m128i*>(block);
  constexpr int vectors = step * sizeof(std::int16_t) / sizeof(__m128i);
  _mm_storeu_si128(to, _mm512_castsi512_si128(upper));
  _mm_storeu_si128(to + vectors, _mm512_extracti64x2_epi64(upper, 1));
  _mm_storeu_si128(to + 2 * vectors, _mm512_extracti64x2_epi64(upper, 2));
  _mm_storeu_si128(to + 3 * vectors, _mm512_extracti64x2_epi64(upper, 3));
  _mm_storeu_si128(to + 4 * vectors, _mm512_castsi512_si128(lower));
  _mm_storeu_si128(to + 5 * vectors, _mm512_extracti64x2_epi64(lower, 1));
  _mm_storeu_si128(to + 6 * vectors, _mm512_extracti64x2_epi64(lower, 2));
  _mm_storeu_si128(to + 7 * vectors, _mm512_extracti64x2_epi64(lower, 3));
}

MILLRACE_VBMI2 inline __m128i dc_of(const TileParts& parts) {
  const DcPlaces& places = dc_places[parts.dc_bits];
  const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(parts.dc_fields));
  const auto vector = [](const auto& list) MILLRACE_VBMI2 {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(list.data()));
  };
  __m256i fields = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(all), vector(places.bytes));
  fields = _mm256_and_si256(_mm256_srlv_epi32(fields, vector(places.bits)),
                            _mm256_set1_epi32((1 << parts.dc_bits) - 1));
  return _mm256_cvtepi32_epi16(
      _mm256_add_epi32(fields, _mm256_set1_epi32(static_cast<int>(parts.dc_least))));
}

}  // namespace

MILLRACE_VBMI2 std::size_t expand_to_bytes_vbmi2(const std::uint8_t* tile, TileBytes& bytes) {
  TileParts parts;
  if (!parts.read(tile)) return 0;
  const __m512i places = _mm512_load_si512(nibble_bytes.data());
  const __m512i values = _mm512_broadcast_i32x4(
      _mm_setr_epi8(-128, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1));
  const __m512i low_bits = _mm512_set1_epi8(15);
  const __m512i escaped = _mm512_set1_epi8(-128);
  const std::uint8_t* escape = parts.escapes;
  std::uint64_t any_wide = 0;
  unsigned nibble = 0;
  for (std::size_t block = 0; block < tile_blocks; ++block) {
    const std::uint64_t mask = parts.masks[block];
    __m512i made = _mm512_permutexvar_epi8(places, _mm512_loadu_si512(parts.nibbles + nibble / 2));
    made = _mm512_multishift_epi64_epi8(_mm512_load_si512(nibble_bits[nibble & 1].data()), made);
    nibble += static_cast<unsigned>(_mm_popcnt_u64(mask));
    made = _mm512_maskz_expand_epi8(mask,
                                    _mm512_shuffle_epi8(values, _mm512_and_si512(made, low_bits)));
    const std::uint64_t escapes = _mm512_cmpeq_epi8_mask(made, escaped);
    made = _mm512_mask_expand_epi8(made, escapes, _mm512_loadu_si512(escape));
    escape += _mm_popcnt_u64(escapes);
    bytes.wide[block] = _mm512_cmpeq_epi8_mask(made, escaped);
    any_wide |= bytes.wide[block];
    _mm512_store_si512(bytes.values[block].data(), made);
  }
  bytes.stored = parts.masks;
  _mm_store_si128(reinterpret_cast<__m128i*>(bytes.dc.data()), dc_of(parts));
  bytes.wide_values = escape;
  if (any_wide != 0)
    for (const std::uint64_t wide : bytes.wide)
      escape += sizeof(std::int16_t) * static_cast<std::size_t>(_mm_popcnt_u64(wide));
  return static_cast<std::size_t>(escape - tile);
}

MILLRACE_VBMI2 std::size_t expand_tile_vbmi2(const std::uint8_t* tile, const TileBlocks& blocks) {
  TileBytes bytes;
  const std::size_t size = expand_to_bytes_vbmi2(tile, bytes);
  if (size == 0) return 0;
  const __m512i rows = _mm512_load_si512(row_places.data());
  for (std::size_t block = 0; block < blocks.size(); ++block)
    store_rows(_mm512_permutexvar_epi8(rows, _mm512_load_si512(bytes.values[block].data())),
               blocks[block]);
  bytes.put_wide_and_dc(blocks);
  return size;
}

}  // namespace millrace::coefficients

#else

namespace millrace::coefficients {

std::size_t expand_to_bytes_vbmi2(const std::uint8_t*, TileBytes&) { return 0; }
std::size_t expand_tile_vbmi2(const std::uint8_t*, const TileBlocks&) { return 0; }

}  // namespace millrace::coefficients

#endif
