// SPDX-License-Identifier: Apache-2.0
#include "coefficients/expand_vbmi2.h"

#include "coefficients/vbmi2.h"

#ifdef __x86_64__

// Highway's target that includes this instruction set.
#define HWY_WANT_AVX3_DL
#include <hwy/highway.h>

#include <array>
#include <bit>

namespace millrace::coefficients {
namespace {

using Bytes = std::array<std::uint8_t, 64>;

/// Each 8 bytes get the 4 bytes with their 8 nibbles, and one byte more.
alignas(64) constexpr Bytes nibble_bytes = [] {
  Bytes places{};
  for (std::size_t n = 0; n < places.size(); ++n)
    places[n] = static_cast<std::uint8_t>(4 * (n / 8) + n % 8);
  return places;
}();
/// The first bit of each nibble in its 8 bytes, from an even nibble on and from an odd one on.
alignas(64) constexpr std::array<Bytes, 2> nibble_bits = [] {
  std::array<Bytes, 2> bits{};
  for (std::size_t odd = 0; odd < 2; ++odd)
    for (std::size_t n = 0; n < bits[odd].size(); ++n)
      bits[odd][n] = static_cast<std::uint8_t>(4 * (n % 8 + odd));
  return bits;
}();
/// The place of each coefficient of a block, row by row, in a vector that begins with the second
/// one of the zigzag order. That vector's last byte is always 0, and stands for the first one.
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

}  // namespace

bool has_vbmi2() {
  hwy::ChosenTarget& chosen = hwy::GetChosenTarget();
  if (!chosen.IsInitialized()) chosen.Update(hwy::SupportedTargets());
  // A better target has a lower index, and includes the instructions of those with higher ones.
  constexpr auto bit = static_cast<std::uint64_t>(HWY_CHOSEN_TARGET_SHIFT(HWY_AVX3_DL));
  return chosen.GetIndex() <= static_cast<std::size_t>(std::countr_zero(bit));
}

MILLRACE_VBMI2 std::size_t expand_tile_vbmi2(const std::uint8_t* tile, const TileBlocks& blocks) {
  TileParts parts;
  if (!parts.read(tile)) return 0;
  const __m512i places = _mm512_load_si512(nibble_bytes.data());
  const __m512i rows = _mm512_load_si512(row_places.data());
  const __m512i values = _mm512_broadcast_i32x4(
      _mm_setr_epi8(-128, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1));
  const __m512i low_bits = _mm512_set1_epi8(15);
  const __m512i escaped = _mm512_set1_epi8(-128);
  const std::uint8_t* escape = parts.escapes;
  std::array<std::uint64_t, tile_blocks> wide;
  std::uint64_t any_wide = 0;
  unsigned nibble = 0;
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    const std::uint64_t mask = parts.masks[block];
    __m512i bytes = _mm512_permutexvar_epi8(places, _mm512_loadu_si512(parts.nibbles + nibble / 2));
    bytes = _mm512_multishift_epi64_epi8(_mm512_load_si512(nibble_bits[nibble & 1].data()), bytes);
    nibble += static_cast<unsigned>(_mm_popcnt_u64(mask));
    bytes = _mm512_maskz_expand_epi8(
        mask, _mm512_shuffle_epi8(values, _mm512_and_si512(bytes, low_bits)));
    const std::uint64_t escapes = _mm512_cmpeq_epi8_mask(bytes, escaped);
    bytes = _mm512_mask_expand_epi8(bytes, escapes, _mm512_loadu_si512(escape));
    escape += _mm_popcnt_u64(escapes);
    wide[block] = _mm512_cmpeq_epi8_mask(bytes, escaped);
    any_wide |= wide[block];
    store_rows(_mm512_permutexvar_epi8(rows, bytes), blocks[block]);
  }
  if (any_wide != 0)
    for (std::size_t block = 0; block < blocks.size(); ++block)
      for (std::uint64_t left = wide[block]; left != 0; left &= left - 1) {
        const auto n = static_cast<std::size_t>(std::countr_zero(left)) + 1;
        blocks[block][jpeg::zigzag_offsets[n]] = load<std::int16_t>(escape);
        escape += sizeof(std::int16_t);
      }
  parts.put_dc(blocks);
  return static_cast<std::size_t>(escape - tile);
}

}  // namespace millrace::coefficients

#endif
