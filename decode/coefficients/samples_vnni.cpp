// SPDX-License-Identifier: Apache-2.0
#include "coefficients/samples_vnni.h"

#ifdef __x86_64__

#include <algorithm>

#include "coefficients/expand_vbmi2.h"
#include "jpeg/avx512.h"
#include "jpeg/coefficients.h"
#include "jpeg/idct.h"

namespace millrace::coefficients {
namespace {

/// Pairs of rows whose coefficients are adjacent, so that `vpdpwssd` multiplies and adds both.
constexpr std::array<std::array<std::size_t, 2>, 4> row_pairs = {{{2, 6}, {0, 4}, {7, 1}, {5, 3}}};
/// The columns in the first and the second half of each 16 bytes. The first pass interleaves the
/// results of both halves, so the inputs of the second pass have the same pairs.
constexpr std::array<std::array<std::size_t, 4>, 2> half_columns = {{{2, 0, 7, 5}, {6, 4, 1, 3}}};
/// Pairs of rows, and columns, if only the lowest 4 x 4 coefficients are nonzero.
constexpr std::array<std::array<std::size_t, 2>, 2> corner_pairs = {{{0, 2}, {1, 3}}};
constexpr std::array<std::size_t, 4> corner_columns = {0, 2, 1, 3};

/// The place of each coefficient of a block, row by row, among the bytes of `TileBytes`. The last
/// byte is 0 and stands for the DC coefficient.
constexpr auto byte_places = [] {
  std::array<std::uint8_t, block_values> places{};
  for (std::size_t n = 0; n < places.size(); ++n)
    places[zigzag_places[n]] = static_cast<std::uint8_t>((n + block_values - 1) % block_values);
  return places;
}();

/// For each byte of the first block: index of the word to which `whole` widens it. The words are
/// those of the vectors with the left and the right half of each pair of rows.
constexpr auto word_places = [] {
  std::array<std::uint8_t, block_values> places{};
  for (std::size_t pair = 0; pair < row_pairs.size(); ++pair)
    for (std::size_t half = 0; half < half_columns.size(); ++half)
      for (std::size_t n = 0; n < 8; ++n)
        places[byte_places[8 * row_pairs[pair][n % 2] + half_columns[half][n / 2]]] =
            static_cast<std::uint8_t>(32 * (2 * pair + half) + n);
  return places;
}();

using Bytes = std::array<std::uint8_t, 64>;

/// Order of a block's bytes with a pair of rows in each 16 bytes. The first 8 of these have half of
/// the columns.
alignas(64) constexpr Bytes whole_order = [] {
  Bytes order{};
  for (std::size_t n = 0; n < order.size(); ++n)
    order[n] = byte_places[8 * row_pairs[n / 16][n % 2] + half_columns[n / 8 % 2][n / 2 % 4]];
  return order;
}();
/// Order of the lowest 4 x 4 coefficients of two blocks, 16 bytes each. An index with bit 6 set
/// selects a byte of the second block.
alignas(64) constexpr Bytes corner_order = [] {
  Bytes order{};
  for (std::size_t n = 0; n < order.size(); ++n)
    order[n] = static_cast<std::uint8_t>(
        byte_places[8 * corner_pairs[n / 8 % 2][n % 2] + corner_columns[n / 2 % 4]] | (n / 16 % 2)
                                                                                          << 6);
  return order;
}();
/// Bit mask of the bytes with all other coefficients.
constexpr std::uint64_t outside_corner = [] {
  std::uint64_t bits = 0;
  for (std::size_t n = 1; n < block_values; ++n)
    if (n / 8 > 3 || n % 8 > 3) bits |= std::uint64_t{1} << byte_places[n];
  return bits;
}();

/// Packs 8 bit positions: each is the first bit of one byte that `vpmultishiftqb` takes from the
/// first pass's sums.
constexpr std::int64_t first_pass_bits(const std::array<int, 8>& first_bits) {
  std::uint64_t all = 0;
  for (std::size_t n = 0; n < first_bits.size(); ++n)
    all |= static_cast<std::uint64_t>(first_bits[n]) << 8 * n;
  return static_cast<std::int64_t>(all);
}
constexpr int low_byte = jpeg::idct::first_shift, high_byte = low_byte + 8;

/// Multiplies the pairs by two factors, and adds both products to the sums.
template <int first, int second>
MILLRACE_VBMI2_INLINE __m512i add_products(__m512i sums, __m512i pairs) {
  constexpr auto factors = static_cast<std::int32_t>(static_cast<std::uint32_t>(second) << 16 |
                                                     (static_cast<std::uint32_t>(first) & 0xFFFF));
  return _mm512_dpwssd_epi32(sums, pairs, _mm512_set1_epi32(factors));
}
template <int first, int second>
MILLRACE_VBMI2_INLINE __m512i products(__m512i pairs) {
  constexpr auto factors = static_cast<std::int32_t>(static_cast<std::uint32_t>(second) << 16 |
                                                     (static_cast<std::uint32_t>(first) & 0xFFFF));
  return _mm512_madd_epi16(pairs, _mm512_set1_epi32(factors));
}

/// The sums of a pass before their shift: output n is `even[n] + odd[n]`, output 7 - n is
/// `even[n] - odd[n]`.
struct Sums {
  __m512i even[4];
  __m512i odd[4];
};

/// Pairs of inputs of a pass.
struct Inputs {
  __m512i of26, of04, of71, of53;
};
struct CornerInputs {
  __m512i of02, of13;
};

constexpr int scale = 1 << jpeg::idct::scale_bits;

MILLRACE_VBMI2_INLINE Sums sums_of(const Inputs& in, __m512i round) {
  using namespace jpeg::idct;
  const __m512i even0 = add_products<scale, scale>(round, in.of04);
  const __m512i even1 = add_products<scale, -scale>(round, in.of04);
  return {{add_products<even3_by_2, even3_by_6>(even0, in.of26),
           add_products<even2_by_2, even2_by_6>(even1, in.of26),
           add_products<-even2_by_2, -even2_by_6>(even1, in.of26),
           add_products<-even3_by_2, -even3_by_6>(even0, in.of26)},
          {add_products<turn4_by_51, turn4_by_73>(
               products<turn4_by_73 + odd3_by_7, turn4_by_51 + odd3_by_1>(in.of71), in.of53),
           add_products<turn3_by_51 + odd2_by_5, turn3_by_73 + odd2_by_3>(
               products<turn3_by_73, turn3_by_51>(in.of71), in.of53),
           add_products<turn4_by_51 + odd1_by_5, turn4_by_73 + odd1_by_3>(
               products<turn4_by_73, turn4_by_51>(in.of71), in.of53),
           add_products<turn3_by_51, turn3_by_73>(
               products<turn3_by_73 + odd0_by_7, turn3_by_51 + odd0_by_1>(in.of71), in.of53)}};
}

MILLRACE_VBMI2_INLINE Sums sums_of(const CornerInputs& in, __m512i round) {
  using namespace jpeg::idct;
  return {{add_products<scale, even3_by_2>(round, in.of02),
           add_products<scale, even2_by_2>(round, in.of02),
           add_products<scale, -even2_by_2>(round, in.of02),
           add_products<scale, -even3_by_2>(round, in.of02)},
          {products<turn4_by_51 + odd3_by_1, turn4_by_73>(in.of13),
           products<turn3_by_51, turn3_by_73 + odd2_by_3>(in.of13),
           products<turn4_by_51, turn4_by_73 + odd1_by_3>(in.of13),
           products<turn3_by_51 + odd0_by_1, turn3_by_73>(in.of13)}};
}

MILLRACE_VBMI2_INLINE __m512i output(const Sums& sums, int n) {
  return n < 4 ? _mm512_add_epi32(sums.even[n], sums.odd[n])
               : _mm512_sub_epi32(sums.even[7 - n], sums.odd[7 - n]);
}

MILLRACE_VBMI2_INLINE __m512i first_round() {
  return _mm512_set1_epi32(1 << (jpeg::idct::first_shift - 1));
}
/// Rounding term of the second pass, plus the 128 that makes samples from the results.
MILLRACE_VBMI2_INLINE __m512i second_round() {
  constexpr int shift = jpeg::idct::second_shift;
  return _mm512_set1_epi32((1 << (shift - 1)) + (128 << shift));
}

/// Transposes the 4 x 4 numbers of 32 bits in each 16 bytes.
MILLRACE_VBMI2_INLINE void transpose(const __m512i* rows, __m512i* columns) {
  const __m512i a = _mm512_unpacklo_epi32(rows[0], rows[1]);
  const __m512i b = _mm512_unpackhi_epi32(rows[0], rows[1]);
  const __m512i c = _mm512_unpacklo_epi32(rows[2], rows[3]);
  const __m512i d = _mm512_unpackhi_epi32(rows[2], rows[3]);
  columns[0] = _mm512_unpacklo_epi64(a, c);
  columns[1] = _mm512_unpackhi_epi64(a, c);
  columns[2] = _mm512_unpacklo_epi64(b, d);
  columns[3] = _mm512_unpackhi_epi64(b, d);
}

/// Makes and stores the samples of four blocks from the sums of the second pass. Output n is column
/// n of all blocks: its rows 0 to 3 are in `upper`, and its rows 4 to 7 in `lower`.
MILLRACE_VBMI2_INLINE void store_samples(const Sums& upper, const Sums& lower,
                                         std::uint8_t* samples, std::size_t stride) {
  // Words of the rows 0, 4, 1, 5, 2, 6, 3, 7.
  __m512i columns[8];
  for (int n = 0; n < 8; ++n)
    columns[n] = _mm512_srai_epi16(
        _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(output(upper, n), 16),
                                output(lower, n)),
        jpeg::idct::second_shift - 16);
  __m512i bytes[4];  // of the columns n and n + 4
  for (int n = 0; n < 4; ++n) bytes[n] = _mm512_packus_epi16(columns[n], columns[n + 4]);
  const __m512i of01 = _mm512_unpacklo_epi8(bytes[0], bytes[1]);
  const __m512i of45 = _mm512_unpackhi_epi8(bytes[0], bytes[1]);
  const __m512i of23 = _mm512_unpacklo_epi8(bytes[2], bytes[3]);
  const __m512i of67 = _mm512_unpackhi_epi8(bytes[2], bytes[3]);
  const __m512i first[2] = {_mm512_unpacklo_epi16(of01, of23), _mm512_unpackhi_epi16(of01, of23)};
  const __m512i last[2] = {_mm512_unpacklo_epi16(of45, of67), _mm512_unpackhi_epi16(of45, of67)};
  const __m512i in_order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  for (int n = 0; n < 4; ++n, samples += stride) {
    const __m512i both = n % 2 == 0 ? _mm512_unpacklo_epi32(first[n / 2], last[n / 2])
                                    : _mm512_unpackhi_epi32(first[n / 2], last[n / 2]);
    const __m512i rows = _mm512_permutexvar_epi64(in_order, both);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(samples), _mm512_castsi512_si256(rows));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(samples + 4 * stride),
                        _mm512_extracti64x4_epi64(rows, 1));
  }
}

MILLRACE_VBMI2_INLINE __m512i load_block(const std::uint8_t* block) {
  return _mm512_load_si512(block);
}

/// Widens the lower or the upper half of each 16 bytes to 16 bits, and multiplies by the steps.
template <bool upper>
MILLRACE_VBMI2_INLINE __m512i dequantised(__m512i bytes, const std::int16_t* steps) {
  const __m512i zero = _mm512_setzero_si512();
  const __m512i values =
      upper ? _mm512_unpackhi_epi8(zero, bytes) : _mm512_unpacklo_epi8(zero, bytes);
  // (value x 2^8) x (step x 2^7) / 2^15, exactly.
  return _mm512_mulhrs_epi16(
      values, _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(steps))));
}

}  // namespace

void StepsForVnni::set(const std::array<std::uint16_t, block_values>& steps) {
  const auto scaled = [&](std::size_t row, std::size_t column) {
    return static_cast<std::int16_t>(steps[8 * row + column] << 7);
  };
  for (std::size_t n = 0; n < 8; ++n) {
    for (std::size_t pair = 0; pair < whole_.size(); ++pair)
      for (std::size_t half = 0; half < 2; ++half)
        whole_[pair][half][n] = scaled(row_pairs[pair][n % 2], half_columns[half][n / 2]);
    for (std::size_t pair = 0; pair < corner_.size(); ++pair)
      corner_[pair][n] = scaled(corner_pairs[pair][n % 2], corner_columns[n / 2]);
  }
  steps_ = steps;
}

class VnniTransform {
 public:
  MILLRACE_VBMI2 static void run(const TileBytes& tile, std::size_t first, std::size_t end,
                                 const StepsForVnni& steps, std::uint8_t* samples,
                                 std::size_t stride) {
    for (std::size_t group = first; group < end; ++group, samples += group_samples) {
      const std::uint64_t* masks = tile.stored.data() + 4 * group;
      const std::uint64_t stored = masks[0] | masks[1] | masks[2] | masks[3];
      const std::uint64_t* wide = tile.wide.data() + 4 * group;
      if (stored == 0)
        constant(tile, group, steps, samples, stride);
      else if ((wide[0] | wide[1] | wide[2] | wide[3]) != 0)
        whole<true>(tile, group, steps, samples, stride);
      else if ((stored & outside_corner) == 0)
        corner(tile, group, steps, samples, stride);
      else
        whole<false>(tile, group, steps, samples, stride);
    }
  }

 private:
  static constexpr std::size_t group_samples = jpeg::BlockGroup::row_values;

  /// Returns the DC coefficients of a group, times their step.
  MILLRACE_VBMI2_INLINE static __m128i dc_of(const TileBytes& tile, std::size_t group,
                                             const StepsForVnni& steps) {
    const auto* const from = reinterpret_cast<const __m128i*>(tile.dc.data() + 4 * group);
    return _mm_mullo_epi16(_mm_loadl_epi64(from),
                           _mm_set1_epi16(static_cast<std::int16_t>(steps.steps_[0])));
  }

  /// Transforms four blocks that have only DC coefficients.
  MILLRACE_VBMI2_INLINE static void constant(const TileBytes& tile, std::size_t group,
                                             const StepsForVnni& steps, std::uint8_t* samples,
                                             std::size_t stride) {
    const __m128i rounded =
        _mm_srai_epi16(_mm_adds_epi16(dc_of(tile, group, steps), _mm_set1_epi16(4)), 3);
    const __m128i values = _mm_add_epi16(rounded, _mm_set1_epi16(128));
    const __m256i bytes = _mm256_broadcastsi128_si256(_mm_packus_epi16(values, values));
    const __m256i row = _mm256_shuffle_epi8(
        bytes, _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    for (int n = 0; n < jpeg::block_side; ++n, samples += stride)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(samples), row);
  }

  /// Transforms four blocks whose coefficients lie among the lowest 4 x 4.
  MILLRACE_VBMI2_INLINE static void corner(const TileBytes& tile, std::size_t group,
                                           const StepsForVnni& steps, std::uint8_t* samples,
                                           std::size_t stride) {
    const auto* const blocks = tile.values.data() + 4 * group;
    const __m512i order = _mm512_load_si512(corner_order.data());
    const auto two = [&](std::size_t n) MILLRACE_VBMI2 {
      return _mm512_castsi512_si256(_mm512_permutex2var_epi8(load_block(blocks[n].data()), order,
                                                             load_block(blocks[n + 1].data())));
    };
    const __m512i bytes = _mm512_inserti64x4(_mm512_castsi256_si512(two(0)), two(2), 1);
    const __m512i of02 = dequantised<false>(bytes, steps.corner_[0].data());
    const Sums rows = sums_of(
        CornerInputs{_mm512_mask_expand_epi16(of02, 0x01010101,
                                              _mm512_castsi128_si512(dc_of(tile, group, steps))),
                     dequantised<true>(bytes, steps.corner_[1].data())},
        first_round());
    // Each 8 bytes have two columns of two rows.
    const __m512i bits =
        _mm512_set1_epi64(first_pass_bits({low_byte, high_byte, 32 + low_byte, 32 + high_byte,
                                           low_byte, high_byte, 32 + low_byte, 32 + high_byte}));
    __m512i pairs[4];
    for (int n = 0; n < 4; ++n)
      pairs[n] =
          _mm512_mask_multishift_epi64_epi8(_mm512_multishift_epi64_epi8(bits, output(rows, 2 * n)),
                                            0xF0F0F0F0F0F0F0F0, bits, output(rows, 2 * n + 1));
    store_samples(sums_of(CornerInputs{_mm512_unpacklo_epi64(pairs[0], pairs[1]),
                                       _mm512_unpackhi_epi64(pairs[0], pairs[1])},
                          second_round()),
                  sums_of(CornerInputs{_mm512_unpacklo_epi64(pairs[2], pairs[3]),
                                       _mm512_unpackhi_epi64(pairs[2], pairs[3])},
                          second_round()),
                  samples, stride);
  }

  /// Transforms any four blocks.
  template <bool has_wide>
  MILLRACE_VBMI2_INLINE static void whole(const TileBytes& tile, std::size_t group,
                                          const StepsForVnni& steps, std::uint8_t* samples,
                                          std::size_t stride) {
    const auto* const blocks = tile.values.data() + 4 * group;
    const __m512i order = _mm512_load_si512(whole_order.data());
    __m512i of_block[4];
    for (std::size_t n = 0; n < 4; ++n)
      of_block[n] = _mm512_permutexvar_epi8(order, load_block(blocks[n].data()));
    // Transposes the vectors, so that each has one pair of rows of four blocks.
    const __m512i a = _mm512_shuffle_i64x2(of_block[0], of_block[1], 0x44);
    const __m512i b = _mm512_shuffle_i64x2(of_block[2], of_block[3], 0x44);
    const __m512i c = _mm512_shuffle_i64x2(of_block[0], of_block[1], 0xEE);
    const __m512i d = _mm512_shuffle_i64x2(of_block[2], of_block[3], 0xEE);
    const __m512i of_pair[4] = {_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xDD),
                                _mm512_shuffle_i64x2(c, d, 0x88), _mm512_shuffle_i64x2(c, d, 0xDD)};
    __m512i left[4], right[4];
    for (std::size_t n = 0; n < 4; ++n) {
      left[n] = dequantised<false>(of_pair[n], steps.whole_[n][0].data());
      right[n] = dequantised<true>(of_pair[n], steps.whole_[n][1].data());
    }
    static_assert(row_pairs[1][0] == 0 && half_columns[0][1] == 0);
    left[1] = _mm512_mask_expand_epi16(left[1], 0x04040404,
                                       _mm512_castsi128_si512(dc_of(tile, group, steps)));
    if (has_wide) put_wide(tile, group, steps, left, right);
    const Sums of_left = sums_of(Inputs{left[0], left[1], left[2], left[3]}, first_round());
    const Sums of_right = sums_of(Inputs{right[0], right[1], right[2], right[3]}, first_round());
    const __m512i bits =
        _mm512_set1_epi64(first_pass_bits({low_byte, high_byte, low_byte, high_byte, 32 + low_byte,
                                           32 + high_byte, 32 + low_byte, 32 + high_byte}));
    __m512i rows[8];
    for (int n = 0; n < 8; ++n)
      rows[n] =
          _mm512_mask_multishift_epi64_epi8(_mm512_multishift_epi64_epi8(bits, output(of_left, n)),
                                            0xCCCCCCCCCCCCCCCC, bits, output(of_right, n));
    __m512i upper[4], lower[4];
    transpose(rows, upper);
    transpose(rows + 4, lower);
    store_samples(sums_of(Inputs{upper[0], upper[1], upper[2], upper[3]}, second_round()),
                  sums_of(Inputs{lower[0], lower[1], lower[2], lower[3]}, second_round()), samples,
                  stride);
  }

  /// Puts a group's coefficients of two bytes, times their steps, into the vectors of `whole`.
  MILLRACE_VBMI2_INLINE static void put_wide(const TileBytes& tile, std::size_t group,
                                             const StepsForVnni& steps, __m512i (&left)[4],
                                             __m512i (&right)[4]) {
    alignas(64) std::array<std::int16_t, 8 * group_samples> words;
    for (std::size_t n = 0; n < 4; ++n) {
      _mm512_store_si512(words.data() + 2 * n * group_samples, left[n]);
      _mm512_store_si512(words.data() + (2 * n + 1) * group_samples, right[n]);
    }
    const std::uint8_t* value = tile.wide_values;
    for (std::size_t block = 0; block < 4 * group; ++block)
      value += sizeof(std::int16_t) * static_cast<std::size_t>(_mm_popcnt_u64(tile.wide[block]));
    for (std::size_t block = 0; block < 4; ++block)
      for (std::uint64_t all = tile.wide[4 * group + block]; all != 0; all &= all - 1) {
        const auto n = static_cast<std::size_t>(_tzcnt_u64(all));
        words[word_places[n] + 8 * block] = static_cast<std::int16_t>(
            load<std::int16_t>(value) * steps.steps_[zigzag_places[n + 1]]);
        value += sizeof(std::int16_t);
      }
    for (std::size_t n = 0; n < 4; ++n) {
      left[n] = _mm512_load_si512(words.data() + 2 * n * group_samples);
      right[n] = _mm512_load_si512(words.data() + (2 * n + 1) * group_samples);
    }
  }
};

void transform_tile_vnni(const TileBytes& tile, std::size_t first, std::size_t end,
                         const StepsForVnni& steps, std::uint8_t* samples, std::size_t stride) {
  VnniTransform::run(tile, first, end, steps, samples, stride);
}

}  // namespace millrace::coefficients

#else

namespace millrace::coefficients {

void StepsForVnni::set(const std::array<std::uint16_t, block_values>&) {}
void transform_tile_vnni(const TileBytes&, std::size_t, std::size_t, const StepsForVnni&,
                         std::uint8_t*, std::size_t) {}

}  // namespace millrace::coefficients

#endif
