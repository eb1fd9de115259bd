// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h).
#include "jpeg/colour.h"

#include <millrace/detail/block_arithmetic.h>

#include <algorithm>

#include "jpeg/avx512.h"

// Disables targets whose vectors may be longer than `row_slack`.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "jpeg/colour.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <millrace/detail/narrow-inl.h>

HWY_BEFORE_NAMESPACE();
namespace millrace::jpeg {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

void convert_ycc(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                 std::uint8_t* rgb, std::size_t width) {
  for (std::size_t x = 0; x < width; ++x, rgb += 3) {
    const Rgb pixel = rgb_of(y[x], cb[x], cr[x]);
    rgb[0] = pixel.red;
    rgb[1] = pixel.green;
    rgb[2] = pixel.blue;
  }
}

void convert_grey(const std::uint8_t* y, std::uint8_t* rgb, std::size_t width) {
  for (std::size_t x = 0; x < width; ++x, rgb += 3) std::fill_n(rgb, 3, y[x]);
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using millrace::HWY_NAMESPACE::narrowed_blocks;

using D8 = hn::ScalableTag<std::uint8_t>;
using D16 = hn::RepartitionToWide<hn::RebindToSigned<D8> >;
using D32 = hn::RepartitionToWide<D16>;
using V8 = hn::Vec<D8>;
using V16 = hn::Vec<D16>;
static_assert(hn::MaxLanes(D8()) <= row_slack);

/// Returns the lower or the upper half of each 16 bytes, widened to 16 bits.
template <bool upper>
HWY_INLINE V16 half_of(V8 bytes) {
  const D8 d8;
  return hn::BitCast(D16(), upper ? hn::InterleaveUpper(d8, bytes, hn::Zero(d8))
                                  : hn::InterleaveLower(d8, bytes, hn::Zero(d8)));
}

struct Colours {
  V16 red, green, blue;
};

/// Returns the colours of half of the pixels, before they are clamped. The colour differences are
/// doubled, so that factors up to 2 fit into 16 bits. The rounded products equal libjpeg's for all
/// 256 differences.
template <bool upper>
HWY_INLINE Colours colours_of(V8 y, V8 cb, V8 cr) {
  const D16 d16;
  const D32 d32;
  const V16 light = half_of<upper>(y);
  const auto twice_difference = [&](V8 chroma) HWY_ATTR {
    const V16 value = hn::Sub(half_of<upper>(chroma), hn::Set(d16, 128));
    return hn::Add(value, value);
  };
  const V16 blue = twice_difference(cb);
  const V16 red = twice_difference(cr);
  constexpr std::int32_t green_factors = static_cast<std::int32_t>(
      static_cast<std::uint32_t>(-23401) << 16 | (static_cast<std::uint32_t>(-11277) & 0xFFFF));
  const auto green_sum = [&](V16 pairs) HWY_ATTR {
    hn::Vec<D32> other = hn::Zero(d32);
    const auto sum = hn::ReorderWidenMulAccumulate(
        d32, pairs, hn::BitCast(d16, hn::Set(d32, green_factors)), hn::Zero(d32), other);
    return hn::ShiftRight<16>(
        hn::Add(hn::RearrangeToOddPlusEven(sum, other), hn::Set(d32, 1 << 15)));
  };
  const V16 green = hn::ReorderDemote2To(d16, green_sum(hn::InterleaveLower(d16, blue, red)),
                                         green_sum(hn::InterleaveUpper(d16, blue, red)));
  return {hn::Add(light, hn::MulFixedPoint15(red, hn::Set(d16, 22971))), hn::Add(light, green),
          hn::Add(light, hn::MulFixedPoint15(blue, hn::Set(d16, 29033)))};
}

void convert_ycc(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                 std::uint8_t* rgb, std::size_t width) {
  const D8 d8;
  for (std::size_t x = 0; x < width; x += hn::Lanes(d8)) {
    const V8 light = hn::LoadU(d8, y + x);
    const V8 blue = hn::LoadU(d8, cb + x);
    const V8 red = hn::LoadU(d8, cr + x);
    const Colours lower = colours_of<false>(light, blue, red);
    const Colours upper = colours_of<true>(light, blue, red);
    hn::StoreInterleaved3(narrowed_blocks(d8, lower.red, upper.red),
                          narrowed_blocks(d8, lower.green, upper.green),
                          narrowed_blocks(d8, lower.blue, upper.blue), d8, rgb + 3 * x);
  }
}

void convert_grey(const std::uint8_t* y, std::uint8_t* rgb, std::size_t width) {
  const D8 d8;
  for (std::size_t x = 0; x < width; x += hn::Lanes(d8)) {
    const V8 light = hn::LoadU(d8, y + x);
    hn::StoreInterleaved3(light, light, light, d8, rgb + 3 * x);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::jpeg {

HWY_EXPORT(convert_ycc);
HWY_EXPORT(convert_grey);

void ycc_to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                std::uint8_t* rgb, std::size_t width) {
  if (has_vbmi2()) return ycc_to_rgb_vbmi(y, cb, cr, rgb, width);
  HWY_DYNAMIC_DISPATCH(convert_ycc)(y, cb, cr, rgb, width);
}

void grey_to_rgb(const std::uint8_t* y, std::uint8_t* rgb, std::size_t width) {
  HWY_DYNAMIC_DISPATCH(convert_grey)(y, rgb, width);
}

}  // namespace millrace::jpeg
#endif
