// SPDX-License-Identifier: Apache-2.0
//
// Converts 16-bit numbers to bytes within the 16-byte blocks of a vector. Sources that Highway
// compiles for each instruction set include this file once for each. The vector's size selects the
// code, never the instruction set's name, because newer versions of Highway have more names. For
// millrace's own folders; not installed.
#if defined(MILLRACE_DETAIL_NARROW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_DETAIL_NARROW_INL_H
#undef MILLRACE_DETAIL_NARROW_INL_H
#else
#define MILLRACE_DETAIL_NARROW_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

/// Returns a vector in which each block has the numbers of that block of `low`, then those of
/// `high`, clamped to 0 .. 255.
template <class D, class V16>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> narrowed_blocks(D d, V16 low, V16 high) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Half<D> half;
  if constexpr (hn::MaxLanes(D()) == 16) {
    return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 32
  } else if constexpr (hn::MaxLanes(D()) == 32) {
    return hn::Vec<D>{_mm256_packus_epi16(low.raw, high.raw)};
#endif
#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 64
  } else if constexpr (hn::MaxLanes(D()) == 64) {
    return hn::Vec<D>{_mm512_packus_epi16(low.raw, high.raw)};
#endif
  } else {
    const hn::RepartitionToWide<hn::RebindToSigned<decltype(half)> > half16;
    return hn::Combine(
        d, narrowed_blocks(half, hn::UpperHalf(half16, low), hn::UpperHalf(half16, high)),
        narrowed_blocks(half, hn::LowerHalf(half16, low), hn::LowerHalf(half16, high)));
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#endif
