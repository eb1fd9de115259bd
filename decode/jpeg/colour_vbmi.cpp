// SPDX-License-Identifier: Apache-2.0
//
// Conversion of colours with AVX-512 VBMI and VNNI. Even and odd samples stay in separate vectors
// until the look-ups that interleave the colours.
#include "jpeg/colour.h"

// Highway's target that includes this instruction set.
#define HWY_WANT_AVX3_DL
#include <hwy/highway.h>

#include <array>
#include <bit>

#include "jpeg/avx512.h"

#ifdef __x86_64__

namespace millrace::jpeg {
namespace {

constexpr std::size_t vector_bytes = 64;
using Bytes = std::array<std::uint8_t, vector_bytes>;

/// Shuffles that interleave three vectors of colours. In those of `red_and_green`, an index with
/// bit 6 set selects green. `is_blue` is the mask of the bytes that `blue` selects.
struct Interleaving {
  alignas(64) std::array<Bytes, 3> red_and_green;
  alignas(64) std::array<Bytes, 3> blue;
  std::array<std::uint64_t, 3> is_blue;
};
constexpr Interleaving interleaving = [] {
  Interleaving made{};
  for (std::size_t byte = 0; byte < 3 * vector_bytes; ++byte) {
    const std::size_t pixel = byte / 3;
    // Each 16 bytes have the eight even pixels, then the eight odd ones.
    const std::size_t place = pixel / 16 * 16 + pixel % 2 * 8 + pixel % 16 / 2;
    const std::size_t to = byte / vector_bytes;
    made.red_and_green[to][byte % vector_bytes] =
        static_cast<std::uint8_t>(place + (byte % 3 == 1 ? vector_bytes : 0));
    made.blue[to][byte % vector_bytes] = static_cast<std::uint8_t>(place);
    if (byte % 3 == 2) made.is_blue[to] |= std::uint64_t{1} << byte % vector_bytes;
  }
  return made;
}();

/// Words of the even or the odd samples: luminance, and twice the differences of chroma from 128.
struct Words {
  __m512i light, blue, red;
};

struct Colours {
  __m512i red, green, blue;
};

/// Adds the products of the even or the odd words with a factor to sums of 32 bits.
template <bool odd>
MILLRACE_VBMI2_INLINE __m512i add_product(__m512i sums, __m512i words, int factor) {
  return _mm512_dpwssd_epi32(sums, words, _mm512_set1_epi32(odd ? factor << 16 : factor & 0xFFFF));
}

/// Converts as libjpeg does. The products with 2^15 are exact for all 256 differences.
MILLRACE_VBMI2_INLINE Colours colours_of(const Words& in) {
  constexpr int green_by_blue = -11277, green_by_red = -23401;
  const __m512i half = _mm512_set1_epi32(1 << 15);
  const __m512i even =
      add_product<false>(add_product<false>(half, in.blue, green_by_blue), in.red, green_by_red);
  const __m512i odd =
      add_product<true>(add_product<true>(half, in.blue, green_by_blue), in.red, green_by_red);
  const __m512i green = _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(even, 16), odd);
  return {_mm512_add_epi16(in.light, _mm512_mulhrs_epi16(in.red, _mm512_set1_epi16(22971))),
          _mm512_add_epi16(in.light, green),
          _mm512_add_epi16(in.light, _mm512_mulhrs_epi16(in.blue, _mm512_set1_epi16(29033)))};
}

MILLRACE_VBMI2_INLINE __m512i even_differences(__m512i chroma) {
  const __m512i words = _mm512_and_si512(chroma, _mm512_set1_epi16(0xFF));
  return _mm512_sub_epi16(_mm512_add_epi16(words, words), _mm512_set1_epi16(256));
}
MILLRACE_VBMI2_INLINE __m512i odd_differences(__m512i chroma) {
  const __m512i words = _mm512_and_si512(_mm512_srli_epi16(chroma, 7), _mm512_set1_epi16(0x1FE));
  return _mm512_sub_epi16(words, _mm512_set1_epi16(256));
}

}  // namespace

bool has_vbmi2() {
  hwy::ChosenTarget& chosen = hwy::GetChosenTarget();
  if (!chosen.IsInitialized()) chosen.Update(hwy::SupportedTargets());
  // A better target has a lower index, and includes the instructions of those with higher ones.
  constexpr auto bit = static_cast<std::uint64_t>(HWY_CHOSEN_TARGET_SHIFT(HWY_AVX3_DL));
  return chosen.GetIndex() <= static_cast<std::size_t>(std::countr_zero(bit));
}

MILLRACE_VBMI2 void ycc_to_rgb_vbmi(const std::uint8_t* y, const std::uint8_t* cb,
                                    const std::uint8_t* cr, std::uint8_t* rgb, std::size_t width) {
  static_assert(vector_bytes <= row_slack);
  for (std::size_t x = 0; x < width; x += vector_bytes, rgb += 3 * vector_bytes) {
    const __m512i light = _mm512_loadu_si512(y + x);
    const __m512i blue = _mm512_loadu_si512(cb + x);
    const __m512i red = _mm512_loadu_si512(cr + x);
    const Colours even = colours_of({_mm512_and_si512(light, _mm512_set1_epi16(0xFF)),
                                     even_differences(blue), even_differences(red)});
    const Colours odd =
        colours_of({_mm512_srli_epi16(light, 8), odd_differences(blue), odd_differences(red)});
    const __m512i reds = _mm512_packus_epi16(even.red, odd.red);
    const __m512i greens = _mm512_packus_epi16(even.green, odd.green);
    const __m512i blues = _mm512_packus_epi16(even.blue, odd.blue);
    for (std::size_t n = 0; n < 3; ++n) {
      const __m512i two = _mm512_permutex2var_epi8(
          reds, _mm512_load_si512(interleaving.red_and_green[n].data()), greens);
      _mm512_storeu_si512(
          rgb + n * vector_bytes,
          _mm512_mask_permutexvar_epi8(two, interleaving.is_blue[n],
                                       _mm512_load_si512(interleaving.blue[n].data()), blues));
    }
  }
}

}  // namespace millrace::jpeg

#else

namespace millrace::jpeg {

bool has_vbmi2() { return false; }
void ycc_to_rgb_vbmi(const std::uint8_t*, const std::uint8_t*, const std::uint8_t*, std::uint8_t*,
                     std::size_t) {}

}  // namespace millrace::jpeg

#endif
