// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h). Each 16-byte block of a
// vector has a row of a JPEG block. Operations do not cross these blocks, except at the end, for
// the samples.
#include "jpeg/idct.h"

#include <limits>

// Disables targets whose vector size is unknown at compile time.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "jpeg/idct.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

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

using D16 = hn::CappedTag<std::int16_t, BlockGroup::row_values>;
using D32 = hn::RepartitionToWide<D16>;
using D64 = hn::RepartitionToWide<D32>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;

/// Two vectors `a` and `b` of 16-bit values, interleaved to pairs (a, b) in two vectors.
struct Pairs {
  V16 lower, upper;
  HWY_INLINE Pairs(V16 a, V16 b)
      : lower(hn::InterleaveLower(D16(), a, b)), upper(hn::InterleaveUpper(D16(), a, b)) {}
};

/// Sums of 32 bits, from the lower and the upper pairs.
struct Sums {
  V32 lower, upper;
};

HWY_INLINE Sums operator+(const Sums& a, const Sums& b) {
  return {hn::Add(a.lower, b.lower), hn::Add(a.upper, b.upper)};
}
HWY_INLINE Sums operator-(const Sums& a, const Sums& b) {
  return {hn::Sub(a.lower, b.lower), hn::Sub(a.upper, b.upper)};
}

/// Multiplies the first of each pair by `by` and the second by `times`, and adds both.
template <int by, int times>
HWY_INLINE Sums products(const Pairs& pairs) {
  const D32 d32;
  const auto factors = hn::BitCast(
      D16(), hn::Set(d32, static_cast<std::int32_t>(static_cast<std::uint32_t>(times) << 16 |
                                                    (static_cast<std::uint32_t>(by) & 0xFFFF))));
  const auto sum = [&](V16 values) {
    V32 other = hn::Zero(d32);
    const V32 one = hn::ReorderWidenMulAccumulate(d32, values, factors, hn::Zero(d32), other);
    return hn::RearrangeToOddPlusEven(one, other);
  };
  return {sum(pairs.lower), sum(pairs.upper)};
}

/// Returns the values times 2^13, in 32 bits.
HWY_INLINE Sums scaled(V16 values) {
  const Pairs high(hn::Zero(D16()), values);
  constexpr int shift = 16 - idct::scale_bits;
  return {hn::ShiftRight<shift>(hn::BitCast(D32(), high.lower)),
          hn::ShiftRight<shift>(hn::BitCast(D32(), high.upper))};
}

template <int shift>
HWY_INLINE V16 rounded(const Sums& sums) {
  return hn::ReorderDemote2To(D16(), hn::ShiftRight<shift>(sums.lower),
                              hn::ShiftRight<shift>(sums.upper));
}

template <int shift>
HWY_INLINE void pass(V16 (&rows)[8]) {
  using namespace idct;
  const V32 half = hn::Set(D32(), 1 << (shift - 1));
  const Sums round{half, half};
  const Pairs of26(rows[2], rows[6]);
  const Sums even0 = scaled(hn::Add(rows[0], rows[4])) + round;
  const Sums even1 = scaled(hn::Sub(rows[0], rows[4])) + round;
  const Sums even2 = products<even2_by_2, even2_by_6>(of26);
  const Sums even3 = products<even3_by_2, even3_by_6>(of26);
  const Pairs turned(hn::Add(rows[7], rows[3]), hn::Add(rows[5], rows[1]));
  const Sums turn3 = products<turn3_by_73, turn3_by_51>(turned);
  const Sums turn4 = products<turn4_by_73, turn4_by_51>(turned);
  const Pairs of71(rows[7], rows[1]);
  const Pairs of53(rows[5], rows[3]);
  const auto out = [&](std::size_t n, const Sums& even, const Sums& odd) HWY_ATTR {
    rows[n] = rounded<shift>(even + odd);
    rows[7 - n] = rounded<shift>(even - odd);
  };
  out(0, even0 + even3, turn4 + products<odd3_by_7, odd3_by_1>(of71));
  out(1, even1 + even2, turn3 + products<odd2_by_5, odd2_by_3>(of53));
  out(2, even1 - even2, turn4 + products<odd1_by_5, odd1_by_3>(of53));
  out(3, even0 - even3, turn3 + products<odd0_by_7, odd0_by_1>(of71));
}

template <class D>
HWY_INLINE void interleave(D d, V16& a, V16& b) {
  const auto first = hn::BitCast(d, a);
  const auto second = hn::BitCast(d, b);
  a = hn::BitCast(D16(), hn::InterleaveLower(d, first, second));
  b = hn::BitCast(D16(), hn::InterleaveUpper(d, first, second));
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

/// Stores samples. Each vector has one column of every block.
HWY_INLINE void store(const V16 (&columns)[8], std::uint8_t* samples, std::size_t stride) {
  const D16 d16;
  V16 pairs[4] = {};  // of columns, as bytes
  for (int n = 0; n < 4; ++n) {
    const auto sample = [&](V16 value) HWY_ATTR {
      return hn::Min(hn::Max(hn::Add(value, hn::Set(d16, 128)), hn::Zero(d16)), hn::Set(d16, 255));
    };
    pairs[n] = hn::Or(sample(columns[2 * n]), hn::ShiftLeft<8>(sample(columns[2 * n + 1])));
  }
  interleave(d16, pairs[0], pairs[1]);  // rows 0 to 3 and 4 to 7, of columns 0 to 3
  interleave(d16, pairs[2], pairs[3]);
  interleave(D32(), pairs[0], pairs[2]);  // rows 0 and 1; 2 and 3
  interleave(D32(), pairs[1], pairs[3]);  // rows 4 and 5; 6 and 7
  const V16 rows[4] = {pairs[0], pairs[2], pairs[1], pairs[3]};
  const hn::Repartition<std::uint8_t, D16> d8;
  const hn::Half<decltype(d8)> half;
  for (int n = 0; n < 4; ++n, samples += 2 * stride) {
    auto both = hn::BitCast(hn::RebindToUnsigned<D64>(), rows[n]);
    if constexpr (hn::MaxLanes(D64()) > 2) {
      // Each 16-byte block has two rows of 8 samples. Moves the first rows of all blocks first.
      constexpr std::size_t lanes = hn::MaxLanes(D64());
      alignas(64) std::uint64_t order[lanes];
      for (std::size_t lane = 0; lane < lanes; ++lane)
        order[lane] = 2 * lane % lanes + 2 * lane / lanes;
      both = hn::TableLookupLanes(both, hn::SetTableIndices(hn::RebindToUnsigned<D64>(), order));
    }
    hn::StoreU(hn::LowerHalf(half, hn::BitCast(d8, both)), half, samples);
    hn::StoreU(hn::UpperHalf(half, hn::BitCast(d8, both)), half, samples + stride);
  }
}

/// Stores the samples of blocks that have only a DC coefficient. All samples of such a block are
/// equal.
HWY_INLINE void store_flat(V16 first_row, std::uint8_t* samples, std::size_t stride) {
  const D16 d16;
  constexpr int shift = idct::second_shift - idct::scale_bits - idct::kept_bits;
  const V16 rounded = hn::ShiftRight<shift>(hn::Add(first_row, hn::Set(d16, 1 << (shift - 1))));
  const hn::Rebind<std::uint8_t, D16> d8;
  // A block is as wide as the 16-byte blocks in which `Broadcast` works.
  const auto row = hn::DemoteTo(d8, hn::Broadcast<0>(hn::Add(rounded, hn::Set(d16, 128))));
  for (int n = 0; n < block_side; ++n, samples += stride) hn::StoreU(row, d8, samples);
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
    pass<idct::first_shift>(rows);
    transpose(rows);
    pass<idct::second_shift>(rows);
    store(rows, samples + at, stride);
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
