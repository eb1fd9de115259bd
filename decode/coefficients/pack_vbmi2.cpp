// SPDX-License-Identifier: Apache-2.0
#include "coefficients/pack_vbmi2.h"

#include "jpeg/avx512.h"

#ifdef __x86_64__

#include <array>
#include <cstring>

namespace millrace::coefficients {
namespace {

constexpr std::size_t lanes = 32;

/// The place in a block of each coefficient in the zigzag order.
alignas(64) constexpr std::array<std::int16_t, block_values> places = [] {
  std::array<std::int16_t, block_values> all{};
  for (std::size_t n = 0; n < all.size(); ++n) all[n] = zigzag_places[n];
  return all;
}();

/// A block's coefficients in the zigzag order.
struct Zigzag {
  __m512i low;
  __m512i high;
  /// The coefficients that are not 0.
  __mmask64 stored;
};

MILLRACE_VBMI2 inline Zigzag zigzag_of(const std::int16_t* block) {
  const __m512i upper = _mm512_loadu_si512(block);
  const __m512i lower = _mm512_loadu_si512(block + lanes);
  Zigzag zigzag;
  zigzag.low = _mm512_permutex2var_epi16(upper, _mm512_load_si512(places.data()), lower);
  zigzag.high = _mm512_permutex2var_epi16(upper, _mm512_load_si512(places.data() + lanes), lower);
  zigzag.stored = std::uint64_t{_mm512_test_epi16_mask(zigzag.high, zigzag.high)} << lanes |
                  _mm512_test_epi16_mask(zigzag.low, zigzag.low);
  return zigzag;
}

/// Writes the nibbles of values; a value that needs more gets the nibble 0. Returns the address
/// after them, from which up to 15 bytes are overwritten, too. `values` must be padded with zeros
/// to a whole vector.
MILLRACE_VBMI2 inline std::uint8_t* pack_nibbles(const std::int16_t* values, std::size_t count,
                                                 std::uint8_t* to) {
  const __m512i low_bits = _mm512_set1_epi16(15);
  for (std::size_t n = 0; n < count; n += lanes) {
    const __m512i value = _mm512_loadu_si512(values + n);
    const __mmask32 fits = _mm512_cmple_epi16_mask(_mm512_set1_epi16(min_nibble), value) &
                           _mm512_cmple_epi16_mask(value, _mm512_set1_epi16(max_nibble));
    const __m512i nibbles = _mm512_maskz_mov_epi16(fits, _mm512_and_si512(value, low_bits));
    // Two nibbles in 32 bits become a byte.
    const __m512i pairs = _mm512_or_si512(nibbles, _mm512_srli_epi32(nibbles, 12));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + n / 2), _mm512_cvtepi32_epi8(pairs));
  }
  return to + (count + 1) / 2;
}

/// Writes a byte for each value that needs more than a nibble, then the values that need more than
/// a byte. Returns the address after them, from which up to 64 bytes are overwritten, too.
MILLRACE_VBMI2 inline std::uint8_t* pack_escapes(const std::int16_t* values, std::size_t count,
                                                 std::uint8_t* to) {
  // Room for one vector more than a tile has.
  std::array<std::int16_t, tile_blocks * block_values + lanes> wide;
  std::size_t wide_count = 0;
  for (std::size_t n = 0; n < count; n += lanes) {
    const __m512i value = _mm512_loadu_si512(values + n);
    const __mmask32 is_long = _mm512_cmplt_epi16_mask(value, _mm512_set1_epi16(min_nibble)) |
                              _mm512_cmplt_epi16_mask(_mm512_set1_epi16(max_nibble), value);
    const __mmask32 is_wide = _mm512_cmplt_epi16_mask(value, _mm512_set1_epi16(min_byte)) |
                              _mm512_cmplt_epi16_mask(_mm512_set1_epi16(max_byte), value);
    const __m256i bytes = _mm256_mask_mov_epi8(_mm512_cvtepi16_epi8(value), is_wide,
                                               _mm256_set1_epi8(static_cast<char>(wide_byte)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_maskz_compress_epi8(is_long, bytes));
    to += _mm_popcnt_u32(is_long);
    if (is_wide == 0) continue;
    _mm512_storeu_si512(wide.data() + wide_count, _mm512_maskz_compress_epi16(is_wide, value));
    wide_count += static_cast<std::size_t>(_mm_popcnt_u32(is_wide));
  }
  std::memcpy(to, wide.data(), wide_count * sizeof wide[0]);
  return to + wide_count * sizeof wide[0];
}

}  // namespace

MILLRACE_VBMI2 void take_zigzag_vbmi2(const std::int16_t* block, ZigzagBlock& zigzag) {
  const Zigzag made = zigzag_of(block);
  zigzag.stored = made.stored;
  _mm512_storeu_si512(zigzag.values.data(), made.low);
  _mm512_storeu_si512(zigzag.values.data() + lanes, made.high);
}

MILLRACE_VBMI2 std::uint8_t* pack_ac_vbmi2(const std::int16_t* blocks, int count,
                                           std::uint8_t* to) {
  // Has room for two more vectors, since stores of the last vector and of the zeros are whole.
  std::array<std::int16_t, tile_blocks * block_values + 2 * lanes> values;
  std::size_t value_count = 0;
  std::uint8_t* mask_to = to + sizeof(std::uint32_t);
  std::uint32_t lengths = 0;
  for (int n = 0; n < count; ++n, blocks += block_values) {
    const Zigzag block = zigzag_of(blocks);
    const std::uint64_t mask = block.stored >> 1;
    const auto bytes = (static_cast<unsigned>(std::bit_width(mask)) + 7) / 8;
    lengths |= bytes << 4 * n;
    store(mask, mask_to);
    mask_to += bytes;
    const auto low = static_cast<__mmask32>(block.stored & ~1ULL);
    const auto high = static_cast<__mmask32>(block.stored >> lanes);
    _mm512_storeu_si512(values.data() + value_count, _mm512_maskz_compress_epi16(low, block.low));
    value_count += static_cast<std::size_t>(_mm_popcnt_u32(low));
    _mm512_storeu_si512(values.data() + value_count, _mm512_maskz_compress_epi16(high, block.high));
    value_count += static_cast<std::size_t>(_mm_popcnt_u32(high));
  }
  _mm512_storeu_si512(values.data() + value_count, _mm512_setzero_si512());
  store(lengths, to);
  return pack_escapes(values.data(), value_count,
                      pack_nibbles(values.data(), value_count, mask_to));
}

}  // namespace millrace::coefficients

#endif
