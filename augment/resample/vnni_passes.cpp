// SPDX-License-Identifier: Apache-2.0
#include "resample/vnni_passes.h"

// Highway's target that includes this instruction set.
#define HWY_WANT_AVX3_DL
#include <hwy/highway.h>

#include <algorithm>
#include <bit>

#ifdef __x86_64__
#ifdef __clang__
#include <immintrin.h>
#else  // GCC 12 warns of a value that its own header leaves uninitialised on purpose.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif
#define MILLRACE_VNNI \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")))
#endif

namespace millrace {
namespace {

/// Numbers per quad of weights in a group's table: first the positions of the bytes that they
/// weight, then the highest, the middle and the lowest digits of the weights.
constexpr std::size_t table_numbers = 4 * DigitAxis::lanes;
/// Number of groups whose bytes fill a vector.
constexpr int groups_at_once = 4;

}  // namespace

bool DigitAxis::try_arrange() {
  if (quads > max_quads) return false;
  const int bytes = 3 * count;
  const int groups = (bytes + lanes - 1) / lanes;
  bases.assign(
      static_cast<std::size_t>(groups + groups_at_once - 1) / groups_at_once * groups_at_once, 0);
  int span = 0;
  int highest = 0;
  for (int group = 0; group < groups; ++group) {
    const int first = group * lanes / 3;
    const int last = std::min((group * lanes + lanes - 1) / 3, count - 1);
    const auto [low, high] = std::minmax_element(begins.begin() + first, begins.begin() + last + 1);
    bases[static_cast<std::size_t>(group)] = 3 * *low;
    span = std::max(span, 3 * (*high - *low + taps));
    highest = std::max(highest, 3 * *low);
  }
  if (span > 128) return false;
  wide = span > 64;
  reach = static_cast<std::size_t>(highest) + (wide ? 128 : 64);
  const auto of_pixel = static_cast<std::size_t>(quads);
  table.resize(std::max(table.size(), bases.size() * of_pixel * table_numbers));
  std::uint32_t* group_table = table.data();
  for (int group = 0; group < groups; ++group, group_table += of_pixel * table_numbers) {
    int pixel = group * lanes / 3;
    int channel = group * lanes % 3;
    for (std::size_t lane = 0; lane < lanes && pixel < count; ++lane) {
      const std::uint32_t* from = digits_of(pixel);
      auto place = static_cast<std::uint32_t>(3 * begins[static_cast<std::size_t>(pixel)] -
                                              bases[static_cast<std::size_t>(group)] + channel);
      std::uint32_t* numbers = group_table + lane;
      for (int quad = 0; quad < quads; ++quad, numbers += table_numbers, from += 4, place += 12) {
        // The positions of four pixels. Where the weight is zero, any position is valid.
        numbers[0] = (place * 0x01010101 + 0x09060300) & 0x7F7F7F7F;
        numbers[lanes] = from[2];
        numbers[2 * lanes] = from[1];
        numbers[3 * lanes] = from[0];
      }
      if (++channel == 3) channel = 0, ++pixel;
    }
  }
  return true;
}

#ifdef __x86_64__

bool has_vnni_passes() {
  hwy::ChosenTarget& chosen = hwy::GetChosenTarget();
  if (!chosen.IsInitialized()) chosen.Update(hwy::SupportedTargets());
  // `SupportedTargets` asks the processor each time, which takes longer than a pass. A better
  // target has a lower index, and includes the instructions of those with higher ones.
  constexpr auto bit = static_cast<std::uint64_t>(HWY_CHOSEN_TARGET_SHIFT(HWY_AVX3_DL));
  return chosen.GetIndex() <= static_cast<std::size_t>(std::countr_zero(bit));
}

MILLRACE_VNNI void DigitAxis::pack(const ResampleAxis& axis) {
  count = axis.count();
  taps = axis.taps();
  quads = (taps + 3) / 4;
  digits.resize(static_cast<std::size_t>(count) * static_cast<std::size_t>(4 * quads));
  begins.resize(static_cast<std::size_t>(count));
  // Four weights' lowest bytes, their second ones, their third ones, and zeros.
  const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, -1, -1, -1, -1);
  // Digits are signed: each digit carries into the next one.
  const __m128i carries = _mm_set1_epi32(0x8080);
  const __m128i signs = _mm_setr_epi32(-0x7F7F7F80, -0x7F7F7F80, 0, 0);
  std::uint32_t* made = digits.data();
  for (int pixel = 0; pixel < count; ++pixel) {
    begins[static_cast<std::size_t>(pixel)] = axis.begin(pixel);
    const std::int32_t* weights = axis.weights(pixel).data();
    for (int left = taps; left > 0; left -= 4, weights += 4, made += 4) {
      const auto mask = static_cast<__mmask8>(left >= 4 ? 15 : (1 << left) - 1);
      const __m128i four = _mm_maskz_loadu_epi32(mask, weights);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(made),
                       _mm_xor_si128(_mm_shuffle_epi8(_mm_add_epi32(four, carries), order), signs));
    }
  }
}

namespace {

/// Initial value of a sum, for rounding: 2^21, divided by 2^16 since the sum is later shifted by
/// two digits.
constexpr int rounding = 32;

/// Returns the bytes of four vectors' sums, clamped to 0 .. 255. Their order is the first vector's
/// first four sums, the second's, the third's, the fourth's, then their next four, and so on.
MILLRACE_VNNI inline __m512i bytes_of(const __m512i (&sums)[4]) {
  constexpr int shift = ResampleAxis::precision_bits;
  return _mm512_packus_epi16(
      _mm512_packs_epi32(_mm512_srai_epi32(sums[0], shift), _mm512_srai_epi32(sums[1], shift)),
      _mm512_packs_epi32(_mm512_srai_epi32(sums[2], shift), _mm512_srai_epi32(sums[3], shift)));
}

template <int quads, bool wide>
MILLRACE_VNNI void make_rows(const DigitAxis& axis, const std::uint8_t* const* rows,
                             std::uint8_t* const* made, std::size_t count) {
  static_assert(groups_at_once == 4);
  constexpr std::size_t vector_bytes = 64;
  const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const std::size_t bytes = 3 * static_cast<std::size_t>(axis.count);
  const std::uint32_t* table = axis.table.data();
  const int* bases = axis.bases.data();
  for (std::size_t offset = 0; offset < bytes; offset += vector_bytes, bases += groups_at_once) {
    const std::size_t left = std::min(bytes - offset, vector_bytes);
    const __mmask64 mask = ~__mmask64{0} >> (vector_bytes - left);
    // Copies, since a stored byte might alias the table.
    __m512i places[groups_at_once][quads], digits[groups_at_once][quads][3];
    for (auto group = 0; group < groups_at_once; ++group)
      for (int quad = 0; quad < quads; ++quad, table += table_numbers) {
        places[group][quad] = _mm512_loadu_si512(table);
        for (int digit = 0; digit < 3; ++digit)
          digits[group][quad][digit] = _mm512_loadu_si512(table + (digit + 1) * DigitAxis::lanes);
      }
    for (std::size_t row = 0; row < count; ++row) {
      __m512i sums[groups_at_once];
      for (int group = 0; group < groups_at_once; ++group) {
        const std::uint8_t* const from = rows[row] + bases[group];
        const __m512i first = _mm512_loadu_si512(from);
        const __m512i second = wide ? _mm512_loadu_si512(from + vector_bytes) : first;
        __m512i values[quads];
        for (int quad = 0; quad < quads; ++quad)
          values[quad] = wide ? _mm512_permutex2var_epi8(first, places[group][quad], second)
                              : _mm512_permutexvar_epi8(places[group][quad], first);
        sums[group] = _mm512_set1_epi32(rounding);
        for (int digit = 0; digit < 3; ++digit) {
          if (digit > 0) sums[group] = _mm512_slli_epi32(sums[group], 8);
          for (int quad = 0; quad < quads; ++quad)
            sums[group] =
                _mm512_dpbusd_epi32(sums[group], values[quad], digits[group][quad][digit]);
        }
      }
      _mm512_mask_storeu_epi8(made[row] + offset, mask,
                              _mm512_permutexvar_epi32(in_order, bytes_of(sums)));
    }
  }
}

template <int quads>
void make_rows(const DigitAxis& axis, const std::uint8_t* const* rows, std::uint8_t* const* made,
               std::size_t count) {
  if (axis.wide)
    make_rows<quads, true>(axis, rows, made, count);
  else
    make_rows<quads, false>(axis, rows, made, count);
}

/// Four rows, interleaved byte by byte.
struct Columns {
  __m512i parts[4];
};

MILLRACE_VNNI inline Columns columns_of(const std::uint8_t* const* rows, std::size_t offset) {
  const __m512i a = _mm512_loadu_si512(rows[0] + offset);
  const __m512i b = _mm512_loadu_si512(rows[1] + offset);
  const __m512i c = _mm512_loadu_si512(rows[2] + offset);
  const __m512i d = _mm512_loadu_si512(rows[3] + offset);
  const __m512i low_ab = _mm512_unpacklo_epi8(a, b);
  const __m512i high_ab = _mm512_unpackhi_epi8(a, b);
  const __m512i low_cd = _mm512_unpacklo_epi8(c, d);
  const __m512i high_cd = _mm512_unpackhi_epi8(c, d);
  return {{_mm512_unpacklo_epi16(low_ab, low_cd), _mm512_unpackhi_epi16(low_ab, low_cd),
           _mm512_unpacklo_epi16(high_ab, high_cd), _mm512_unpackhi_epi16(high_ab, high_cd)}};
}

/// Makes a row. `fixed` is the number of quads, whose columns then stay in registers; 0 if it is
/// known at run time only.
template <int fixed>
MILLRACE_VNNI void make_row(const std::uint32_t* digits, int any_quads,
                            const std::uint8_t* const* rows, std::uint8_t* made,
                            std::size_t bytes) {
  const int quads = fixed == 0 ? any_quads : fixed;
  for (std::size_t byte = 0; byte < bytes; byte += 64) {
    const std::size_t offset = std::min(byte, bytes - 64);
    Columns kept[std::max(fixed, 1)];
    for (int quad = 0; quad < fixed; ++quad) kept[quad] = columns_of(rows + 4 * quad, offset);
    __m512i sums[4];
    for (__m512i& sum : sums) sum = _mm512_set1_epi32(rounding);
    for (int digit = 2; digit >= 0; --digit) {
      if (digit < 2)
        for (__m512i& sum : sums) sum = _mm512_slli_epi32(sum, 8);
      for (int quad = 0; quad < quads; ++quad) {
        const Columns columns = fixed == 0 ? columns_of(rows + 4 * quad, offset) : kept[quad];
        const __m512i weights = _mm512_set1_epi32(static_cast<int>(digits[4 * quad + digit]));
        for (int part = 0; part < 4; ++part)
          sums[part] = _mm512_dpbusd_epi32(sums[part], columns.parts[part], weights);
      }
    }
    _mm512_storeu_si512(made + offset, bytes_of(sums));
  }
}

}  // namespace

void vnni_horizontal(const DigitAxis& axis, const std::uint8_t* const* rows,
                     std::uint8_t* const* made, std::size_t count) {
  static_assert(DigitAxis::max_quads == 4);
  if (axis.quads == 1)
    make_rows<1>(axis, rows, made, count);
  else if (axis.quads == 2)
    make_rows<2>(axis, rows, made, count);
  else if (axis.quads == 3)
    make_rows<3>(axis, rows, made, count);
  else
    make_rows<4>(axis, rows, made, count);
}

void vnni_vertical(const std::uint32_t* digits, int quads, const std::uint8_t* const* rows,
                   std::uint8_t* made, std::size_t bytes) {
  if (quads == 1)
    make_row<1>(digits, quads, rows, made, bytes);
  else if (quads == 2)
    make_row<2>(digits, quads, rows, made, bytes);
  else
    make_row<0>(digits, quads, rows, made, bytes);
}

#else

bool has_vnni_passes() { return false; }
void DigitAxis::pack(const ResampleAxis&) {}
void vnni_horizontal(const DigitAxis&, const std::uint8_t* const*, std::uint8_t* const*,
                     std::size_t) {}
void vnni_vertical(const std::uint32_t*, int, const std::uint8_t* const*, std::uint8_t*,
                   std::size_t) {}

#endif

}  // namespace millrace
