// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h). Each 16-byte block of a
// vector has a row of a JPEG block.
#include "jpeg/idct.h"

#include <limits>

// Disables targets whose vector size is unknown at compile time.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "jpeg/idct.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "jpeg/idct-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::jpeg {
namespace HWY_NAMESPACE {
namespace {

void transform_plainly(const BlockGroup& group, const StepsOfGroup& steps, std::uint8_t* samples,
                       std::size_t stride) {
  for (int block = 0; block < BlockGroup::blocks; ++block) {
    const int at = block * block_side;
    inverse_transform_plain(group.values.data() + at, steps.values() + at, samples + at, stride);
  }
}

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

void transform(const BlockGroup& group, const StepsOfGroup& steps, std::uint8_t* samples,
               std::size_t stride) {
  transform_plainly(group, steps, samples, stride);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

/// Returns values times 2^13, in 32 bits, from pairs of 0 and the value.
HWY_INLINE V32 scaled(V16 pairs) {
  return hn::ShiftRight<16 - idct::scale_bits>(hn::BitCast(D32(), pairs));
}

/// The sums of a pass over the rows, for the lower and the upper lanes of each block.
struct PassSums {
  Outputs lower, upper;
};

/// The sum and the difference of rows 0 and 4 wrap around at 16 bits.
template <int shift>
HWY_INLINE PassSums sums_of(const V16 (&rows)[8]) {
  const Pairs sum = pairs_of(hn::Zero(D16()), hn::Add(rows[0], rows[4]));
  const Pairs difference = pairs_of(hn::Zero(D16()), hn::Sub(rows[0], rows[4]));
  const Pairs of26 = pairs_of(rows[2], rows[6]);
  const Pairs of71 = pairs_of(rows[7], rows[1]);
  const Pairs of35 = pairs_of(rows[3], rows[5]);
  const V32 round = hn::Set(D32(), 1 << (shift - 1));
  return {outputs_of(hn::Add(scaled(sum.lower), round), hn::Add(scaled(difference.lower), round),
                     of26.lower, of71.lower, of35.lower),
          outputs_of(hn::Add(scaled(sum.upper), round), hn::Add(scaled(difference.upper), round),
                     of26.upper, of71.upper, of35.upper)};
}

/// Shifts the first pass's sums, and joins them to eight rows of values clamped to 16 bits.
HWY_INLINE void join(const PassSums& sums, V16 (&rows)[8]) {
  const auto& [lower, upper] = sums;
  const auto joined = [](V32 a, V32 b) HWY_ATTR {
    constexpr int shift = idct::first_shift;
    return hn::ReorderDemote2To(D16(), hn::ShiftRight<shift>(a), hn::ShiftRight<shift>(b));
  };
  for (std::size_t n = 0; n < 4; ++n) {
    rows[n] = joined(hn::Add(lower.even[n], lower.odd[n]), hn::Add(upper.even[n], upper.odd[n]));
    rows[7 - n] =
        joined(hn::Sub(lower.even[n], lower.odd[n]), hn::Sub(upper.even[n], upper.odd[n]));
  }
}

/// Transposes each block.
HWY_INLINE void transpose(V16 (&rows)[8]) {
  for (int n = 0; n < 8; n += 2) interleave(D16(), rows[n], rows[n + 1]);
  // Now vector 0 has the columns 0 to 3 of rows 0 and 1, vector 1 the columns 4 to 7. Vectors 2 and
  // 3 have those of rows 2 and 3, and so on.
  for (const int n : {0, 1, 4, 5}) interleave(D32(), rows[n], rows[n + 2]);
  // Columns 0 and 1 of rows 0 to 3 are in vector 0, columns 2 and 3 in vector 2. Columns 4 and 5
  // are in vector 1, columns 6 and 7 in vector 3.
  for (int n = 0; n < 4; ++n) interleave(D64(), rows[n], rows[n + 4]);
  const V16 made[8] = {rows[0], rows[4], rows[2], rows[6], rows[1], rows[5], rows[3], rows[7]};
  for (int n = 0; n < 8; ++n) rows[n] = made[n];
}

void transform(const BlockGroup& group, const StepsOfGroup& steps, std::uint8_t* samples,
               std::size_t stride) {
  const D16 d16;
  alignas(16) constexpr std::int16_t but_first[8] = {0, -1, -1, -1, -1, -1, -1, -1};
  for (std::size_t at = 0; at < BlockGroup::row_values; at += hn::MaxLanes(d16)) {
    V16 rows[8] = {};
    for (std::size_t row = 0; row < 8; ++row) {
      const std::size_t offset = row * BlockGroup::row_values + at;
      rows[row] = hn::Mul(hn::Load(d16, group.values.data() + offset),
                          hn::Load(d16, steps.values() + offset));
    }
    // For larger values libjpeg-turbo's shortcut for blocks of one row gives other samples.
    constexpr std::int16_t largest = std::numeric_limits<std::int16_t>::max() >> idct::kept_bits;
    const auto is_large =
        hn::Or(hn::Gt(rows[0], hn::Set(d16, largest)), hn::Lt(rows[0], hn::Set(d16, -largest)));
    if (!hn::AllFalse(d16, is_large)) {
      transform_plainly(group, steps, samples, stride);
      return;
    }
    V16 any = hn::And(rows[0], hn::LoadDup128(d16, but_first));
    for (std::size_t row = 1; row < 8; ++row) any = hn::Or(any, rows[row]);
    if (hn::AllTrue(d16, hn::Eq(any, hn::Zero(d16)))) {
      store_flat(rows[0], samples + at, stride);
      continue;
    }
    join(sums_of<idct::first_shift>(rows), rows);
    transpose(rows);
    const PassSums sums = sums_of<idct::second_shift>(rows);
    store_samples<sample_centre>(sums.lower, samples + at, stride);
    store_samples<sample_centre>(sums.upper, samples + at + 4 * stride, stride);
  }
}

#endif

void transform_groups(const BlockGroup* groups, int count, const StepsOfGroup& steps,
                      std::uint8_t* samples, std::size_t stride) {
  for (; count > 0; --count, ++groups, samples += BlockGroup::row_values)
    transform(*groups, steps, samples, stride);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::jpeg {

HWY_EXPORT(transform_groups);

void inverse_transform(const BlockGroup* groups, int count, const StepsOfGroup& steps,
                       std::uint8_t* samples, std::size_t stride) {
  HWY_DYNAMIC_DISPATCH(transform_groups)(groups, count, steps, samples, stride);
}

}  // namespace millrace::jpeg
#endif
