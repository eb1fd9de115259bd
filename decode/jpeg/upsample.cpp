// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h).
#include "jpeg/upsample.h"

// Disables targets whose vectors may be longer than `row_slack`.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "jpeg/upsample.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "jpeg/colour.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::jpeg {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D16 = hn::ScalableTag<std::int16_t>;
using V16 = hn::Vec<D16>;
static_assert(2 * hn::MaxLanes(D16()) <= row_slack);

HWY_INLINE V16 load(const std::uint8_t* bytes) {
  return hn::PromoteTo(D16(), hn::LoadU(hn::Rebind<std::uint8_t, D16>(), bytes));
}

HWY_INLINE V16 three_and_one(V16 near_one, V16 far_one) {
  return hn::Add(hn::Add(near_one, far_one), hn::Add(near_one, near_one));
}

void sum(const std::uint8_t* near_row, const std::uint8_t* far_row, std::int16_t* sums,
         std::size_t count) {
  const D16 d16;
  for (std::size_t x = 0; x < count; x += hn::Lanes(d16))
    hn::StoreU(three_and_one(load(near_row + x), load(far_row + x)), d16, sums + x);
}

void widen(const std::uint8_t* row, std::int16_t* sums, std::size_t count) {
  const D16 d16;
  for (std::size_t x = 0; x < count; x += hn::Lanes(d16)) hn::StoreU(load(row + x), d16, sums + x);
}

/// Smooths sums that are samples times 2^(shift - 2).
template <int shift>
HWY_INLINE void smooth(const std::int16_t* sums, std::uint8_t* samples, std::size_t count) {
  const D16 d16;
  // Rounds ties of the left one of two samples down, and of the right one up. With sums of two rows
  // the left one is rounded up, and the right one down.
  const V16 left_round = hn::Set(d16, static_cast<std::int16_t>(shift == 4 ? 8 : 1));
  const V16 right_round = hn::Set(d16, static_cast<std::int16_t>(shift == 4 ? 7 : 2));
  const hn::Repartition<std::uint8_t, D16> d8;
  for (std::size_t x = 0; x < count; x += hn::Lanes(d16)) {
    const V16 here = hn::LoadU(d16, sums + x);
    const V16 left = three_and_one(here, hn::LoadU(d16, sums + x - 1));
    const V16 right = three_and_one(here, hn::LoadU(d16, sums + x + 1));
    const V16 both = hn::Or(hn::ShiftRight<shift>(hn::Add(left, left_round)),
                            hn::ShiftLeft<8>(hn::ShiftRight<shift>(hn::Add(right, right_round))));
#if HWY_TARGET == HWY_SCALAR
    samples[2 * x] = static_cast<std::uint8_t>(hn::GetLane(both) & 0xFF);
    samples[2 * x + 1] =
        static_cast<std::uint8_t>(static_cast<std::uint16_t>(hn::GetLane(both)) >> 8);
#else
    hn::StoreU(hn::BitCast(d8, both), d8, samples + 2 * x);
#endif
  }
  (void)d8;
}

void smooth_samples(const std::int16_t* sums, std::uint8_t* samples, std::size_t count) {
  smooth<2>(sums, samples, count);
}

void smooth_sums(const std::int16_t* sums, std::uint8_t* samples, std::size_t count) {
  smooth<4>(sums, samples, count);
}

void smooth_rows(const std::uint8_t* near_row, const std::uint8_t* far_row, std::uint8_t* samples,
                 std::size_t count, int round) {
  const D16 d16;
  const hn::Rebind<std::uint8_t, D16> d8;
  const V16 rounding = hn::Set(d16, static_cast<std::int16_t>(round));
  for (std::size_t x = 0; x < count; x += hn::Lanes(d16)) {
    const V16 sum = three_and_one(load(near_row + x), load(far_row + x));
    hn::StoreU(hn::DemoteTo(d8, hn::ShiftRight<2>(hn::Add(sum, rounding))), d8, samples + x);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::jpeg {

HWY_EXPORT(sum);
HWY_EXPORT(widen);
HWY_EXPORT(smooth_samples);
HWY_EXPORT(smooth_sums);
HWY_EXPORT(smooth_rows);

void sum_rows(const std::uint8_t* near_row, const std::uint8_t* far_row, std::int16_t* sums,
              std::size_t count) {
  HWY_DYNAMIC_DISPATCH(sum)(near_row, far_row, sums, count);
}

void widen_row(const std::uint8_t* row, std::int16_t* sums, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(widen)(row, sums, count);
}

void smooth_across(const std::int16_t* sums, std::uint8_t* samples, std::size_t count,
                   bool of_two_rows) {
  if (of_two_rows)
    HWY_DYNAMIC_DISPATCH(smooth_sums)(sums, samples, count);
  else
    HWY_DYNAMIC_DISPATCH(smooth_samples)(sums, samples, count);
}

void smooth_down(const std::uint8_t* near_row, const std::uint8_t* far_row, std::uint8_t* samples,
                 std::size_t count, bool upper) {
  HWY_DYNAMIC_DISPATCH(smooth_rows)(near_row, far_row, samples, count, upper ? 1 : 2);
}

}  // namespace millrace::jpeg
#endif
