// SPDX-License-Identifier: Apache-2.0
//
// Included once for each instruction set, by sources that Highway compiles for each. Bytes are
// widened to 16 bits and those to 32 within each 16-byte block of a vector, and put together again
// the same way.
#if defined(MILLRACE_PIXELS_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_PIXELS_VECTORS_INL_H
#undef MILLRACE_PIXELS_VECTORS_INL_H
#else
#define MILLRACE_PIXELS_VECTORS_INL_H
#endif

#include <hwy/highway.h>

#include "pixels/slope.h"
#include "resample/narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

namespace hn = hwy::HWY_NAMESPACE;

using D8 = hn::ScalableTag<std::uint8_t>;
using D16 = hn::ScalableTag<std::int16_t>;
using DU16 = hn::ScalableTag<std::uint16_t>;
using D32 = hn::ScalableTag<std::int32_t>;
using DF = hn::ScalableTag<float>;
using V8 = hn::Vec<D8>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;
using VF = hn::Vec<DF>;

/// As many values as a vector of half their size has.
template <class V>
struct Two {
  V low, high;

  // Written out: implicit ones would be compiled without the instruction set.
  HWY_INLINE Two() {}
  HWY_INLINE Two(V low_half, V high_half) : low(low_half), high(high_half) {}
};

HWY_INLINE Two<V16> widened(V8 bytes) {
  const V8 zero = hn::Zero(D8());
  return {hn::BitCast(D16(), hn::InterleaveLower(D8(), bytes, zero)),
          hn::BitCast(D16(), hn::InterleaveUpper(D8(), bytes, zero))};
}

/// Cut to 0 .. 255.
HWY_INLINE V8 narrowed(const Two<V16>& values) {
  return narrowed_blocks(D8(), values.low, values.high);
}

HWY_INLINE Two<VF> to_floats(V16 values) {
  const auto wide = [](V16 twice) HWY_ATTR {
    return hn::ConvertTo(DF(), hn::ShiftRight<16>(hn::BitCast(D32(), twice)));
  };
  return {wide(hn::InterleaveLower(D16(), values, values)),
          wide(hn::InterleaveUpper(D16(), values, values))};
}

/// Rounded towards zero, cut to 16 bits.
HWY_INLINE V16 from_floats(const Two<VF>& values) {
  return hn::ReorderDemote2To(D16(), hn::ConvertTo(D32(), values.low),
                              hn::ConvertTo(D32(), values.high));
}

/// `blended`, but not cut to 0 .. 255.
HWY_INLINE V16 blend(const Slope& slope, V16 a, V16 b) {
  const V16 difference = hn::Sub(b, a);
  if (slope.integers) {
    const V16 share = hn::MulHigh(difference, hn::Set(D16(), slope.share));
    if (slope.whole == 1) return hn::Add(b, share);
    const V16 whole = hn::Mul(difference, hn::Set(D16(), slope.whole));
    return hn::Add(hn::Add(a, whole), share);
  }
  const VF factor = hn::Set(DF(), slope.factor);
  const Two<VF> from = to_floats(a);
  const Two<VF> steps = to_floats(difference);
  return from_floats({hn::Add(from.low, hn::Mul(steps.low, factor)),
                      hn::Add(from.high, hn::Mul(steps.high, factor))});
}

/// A blend's result cut to 0 .. 255, outside of which it is with factors above 1 alone: none is
/// below 0.
HWY_INLINE V16 cut(const Slope& slope, V16 values) {
  if (slope.factor <= 1) return values;
  return hn::Min(hn::Max(values, hn::Zero(D16())), hn::Set(D16(), 255));
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#endif
