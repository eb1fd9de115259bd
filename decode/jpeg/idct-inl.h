// SPDX-License-Identifier: Apache-2.0
//
// Parts of the inverse transform of blocks that are in vectors. Each 16-byte block of a vector has
// values of one JPEG block. Operations do not cross these blocks, except at the end, for the
// samples. Included once for each instruction set that has vectors.
#if defined(MILLRACE_JPEG_IDCT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_JPEG_IDCT_INL_H
#undef MILLRACE_JPEG_IDCT_INL_H
#else
#define MILLRACE_JPEG_IDCT_INL_H
#endif

#include <hwy/highway.h>
#include <millrace/detail/block_arithmetic.h>
#include <millrace/detail/narrow-inl.h>

#include <cstddef>
#include <cstdint>

#include "jpeg/coefficients.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

HWY_BEFORE_NAMESPACE();
namespace millrace::jpeg {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using millrace::HWY_NAMESPACE::narrowed_blocks;

using D16 = hn::CappedTag<std::int16_t, BlockGroup::row_values>;
using D32 = hn::RepartitionToWide<D16>;
using D64 = hn::RepartitionToWide<D32>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;

/// Pairs of 16-bit values in two vectors.
struct Pairs {
  V16 lower, upper;
};

/// Interleaves two vectors `a` and `b` to pairs (a, b).
HWY_INLINE Pairs pairs_of(V16 a, V16 b) {
  return {hn::InterleaveLower(D16(), a, b), hn::InterleaveUpper(D16(), a, b)};
}

/// Multiplies the first of each pair by `by` and the second by `times`, and adds both.
template <int by, int times>
HWY_INLINE V32 products(V16 pairs) {
  const D32 d32;
  const auto factors = hn::BitCast(
      D16(), hn::Set(d32, static_cast<std::int32_t>(static_cast<std::uint32_t>(times) << 16 |
                                                    (static_cast<std::uint32_t>(by) & 0xFFFF))));
  V32 other = hn::Zero(d32);
  const V32 one = hn::ReorderWidenMulAccumulate(d32, pairs, factors, hn::Zero(d32), other);
  return hn::RearrangeToOddPlusEven(one, other);
}

/// The sums of a pass before their shift: output n is `even[n] + odd[n]`, output 7 - n is
/// `even[n] - odd[n]`.
struct Outputs {
  V32 even[4], odd[4];
};

/// Makes the sums of a pass from pairs of inputs. `even0` and `even1` are the sum and the
/// difference of the inputs 0 and 4, scaled and with the half that rounds.
HWY_INLINE Outputs outputs_of(V32 even0, V32 even1, V16 of26, V16 of71, V16 of35) {
  using namespace idct;
  const V32 even2 = products<even2_by_2, even2_by_6>(of26);
  const V32 even3 = products<even3_by_2, even3_by_6>(of26);
  const V16 turned = hn::Add(of71, of35);
  const V32 turn3 = products<turn3_by_73, turn3_by_51>(turned);
  const V32 turn4 = products<turn4_by_73, turn4_by_51>(turned);
  return {
      {hn::Add(even0, even3), hn::Add(even1, even2), hn::Sub(even1, even2), hn::Sub(even0, even3)},
      {hn::Add(turn4, products<odd3_by_7, odd3_by_1>(of71)),
       hn::Add(turn3, products<odd2_by_3, odd2_by_5>(of35)),
       hn::Add(turn4, products<odd1_by_3, odd1_by_5>(of35)),
       hn::Add(turn3, products<odd0_by_7, odd0_by_1>(of71))}};
}

/// Samples have 128 added to the transform's results.
inline constexpr int sample_centre = 128;

template <class D>
HWY_INLINE void interleave(D d, V16& a, V16& b) {
  const auto first = hn::BitCast(d, a);
  const auto second = hn::BitCast(d, b);
  a = hn::BitCast(D16(), hn::InterleaveLower(d, first, second));
  b = hn::BitCast(D16(), hn::InterleaveUpper(d, first, second));
}

/// Shifts sums right and joins them to pairs of 16-bit values: (a, b) in each lane. Drops the bits
/// above these.
template <int shift>
HWY_INLINE V16 shifted_pairs(V32 a, V32 b) {
  V32 upper = b;
  if constexpr (shift < 16)
    upper = hn::ShiftLeft<16 - shift>(b);
  else
    upper = hn::ShiftRight<shift - 16>(b);
  return hn::OddEven(hn::BitCast(D16(), upper), hn::BitCast(D16(), hn::ShiftRight<shift>(a)));
}

/// Makes four rows of samples from the second pass's sums, whose lanes are these rows: shifts them,
/// adds `centre`, and stores them clamped to 0 .. 255.
template <int centre>
HWY_INLINE void store_samples(const Outputs& sums, std::uint8_t* samples, std::size_t stride) {
  const hn::Repartition<std::uint8_t, D16> d8;
  const auto columns = [](V32 a, V32 b) HWY_ATTR {
    const V16 pairs = shifted_pairs<idct::second_shift>(a, b);
    return centre == 0 ? pairs : hn::Add(pairs, hn::Set(D16(), centre));
  };
  const auto [even, odd] = sums;
  const V16 of01 = columns(hn::Add(even[0], odd[0]), hn::Add(even[1], odd[1]));
  const V16 of23 = columns(hn::Add(even[2], odd[2]), hn::Add(even[3], odd[3]));
  const V16 of45 = columns(hn::Sub(even[3], odd[3]), hn::Sub(even[2], odd[2]));
  const V16 of67 = columns(hn::Sub(even[1], odd[1]), hn::Sub(even[0], odd[0]));
  V16 first = hn::BitCast(D16(), narrowed_blocks(d8, of01, of45));
  V16 second = hn::BitCast(D16(), narrowed_blocks(d8, of23, of67));
  interleave(D16(), first, second);  // columns 0 to 3 of all rows; 4 to 7
  interleave(D32(), first, second);  // rows 0 and 1; 2 and 3
  const hn::RebindToUnsigned<D64> d64;
  const auto store_two = [&](auto rows, std::uint8_t* to) HWY_ATTR {
    const hn::Half<decltype(d8)> half;
    hn::StoreU(hn::LowerHalf(half, hn::BitCast(d8, rows)), half, to);
    hn::StoreU(hn::UpperHalf(half, hn::BitCast(d8, rows)), half, to + 2 * stride);
  };
  const auto of_01 = hn::BitCast(d64, first);
  const auto of_23 = hn::BitCast(d64, second);
  store_two(hn::ConcatEven(d64, of_23, of_01), samples);          // rows 0 and 2
  store_two(hn::ConcatOdd(d64, of_23, of_01), samples + stride);  // rows 1 and 3
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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::jpeg
HWY_AFTER_NAMESPACE();

#endif

#endif  // include guard
