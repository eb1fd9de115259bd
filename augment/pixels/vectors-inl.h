// SPDX-License-Identifier: Apache-2.0
//
// Conversions of vectors. Included once for each instruction set, by sources that Highway compiles
// for each. Within each 16-byte block of a vector, bytes are widened to 16 bits and those to 32
// bits, and narrowed again in the same order.
#if defined(MILLRACE_PIXELS_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_PIXELS_VECTORS_INL_H
#undef MILLRACE_PIXELS_VECTORS_INL_H
#else
#define MILLRACE_PIXELS_VECTORS_INL_H
#endif

#include <hwy/highway.h>
#include <millrace/detail/narrow-inl.h>

#include "pixels/slope.h"

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

/// The values of one vector after they are widened to twice their size.
template <class V>
struct Two {
  V low, high;

  // Explicit, since implicit constructors would be compiled without the instruction set.
  HWY_INLINE Two() {}
  HWY_INLINE Two(V low_half, V high_half) : low(low_half), high(high_half) {}
};

HWY_INLINE Two<V16> widened(V8 bytes) {
  const V8 zero = hn::Zero(D8());
  return {hn::BitCast(D16(), hn::InterleaveLower(D8(), bytes, zero)),
          hn::BitCast(D16(), hn::InterleaveUpper(D8(), bytes, zero))};
}

/// Clamps to 0 .. 255.
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

/// Rounds towards zero and saturates to 16 bits.
HWY_INLINE V16 from_floats(const Two<VF>& values) {
  return hn::ReorderDemote2To(D16(), hn::ConvertTo(D32(), values.low),
                              hn::ConvertTo(D32(), values.high));
}

/// Does what `blended` does, without the clamp to 0 .. 255.
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

/// Clamps a blend's result to 0 .. 255. Only factors above 1 leave that range, since no factor is
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
