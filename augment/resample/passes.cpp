// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h). All sums are integers modulo
// 2^32, so all sets give the same bits. Each 16-byte block of a vector has a row of its own, and no
// operation crosses blocks.
#include "resample/passes.h"

#include <algorithm>
#include <cstring>

// Disables instruction sets whose vector size is unknown at compile time.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "resample/passes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <millrace/detail/narrow-inl.h>

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Returns one value from `source(0)`, `source(1)` and so on: for processors without vectors, and
/// rows too short for them.
template <class Source>
HWY_INLINE std::uint8_t one_value(const std::int32_t* weights, int pairs, Source source) {
  std::int32_t sum = 1 << (ResampleAxis::precision_bits - 1);
  for (int pair = 0; pair < pairs; ++pair, weights += 2) {
    const auto weight = [&](int shift) {
      return static_cast<std::int16_t>(weights[0] >> shift) * 2048 +
             static_cast<std::int16_t>(weights[1] >> shift);
    };
    sum += source(2 * pair) * weight(0) + source(2 * pair + 1) * weight(16);
  }
  return static_cast<std::uint8_t>(std::clamp(sum >> ResampleAxis::precision_bits, 0, 255));
}

#if HWY_TARGET == HWY_SCALAR

void make_pixels_of_rows(const PackedAxis& axis, const std::uint8_t* const* rows,
                         std::uint8_t* const* made, std::size_t count) {
  for (std::size_t row = 0; row < count; ++row)
    for (int pixel = 0; pixel < axis.count; ++pixel)
      for (int channel = 0; channel < 3; ++channel) {
        const std::uint8_t* from =
            rows[row] + 3 * axis.begins[static_cast<std::size_t>(pixel)] + channel;
        made[row][3 * pixel + channel] =
            one_value(axis.weights_of(pixel), axis.pairs, [&](int tap) { return from[3 * tap]; });
      }
}

#else

using D8 = hn::ScalableTag<std::uint8_t>;
using D16 = hn::ScalableTag<std::int16_t>;
using D32 = hn::ScalableTag<std::int32_t>;
using V8 = hn::Vec<D8>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;

constexpr std::size_t vector_bytes = hn::MaxLanes(D8());
constexpr std::size_t blocks = vector_bytes / 16;
static_assert(vector_bytes % 16 == 0);
/// Number of rows that one step makes: two vectors of `blocks` rows. Both use the loaded weights.
constexpr std::size_t step_rows = 2 * blocks;
static_assert(pass_rows % step_rows == 0);

/// Loads 16 bytes at the same offset from each of as many rows as D has blocks.
template <class D>
HWY_INLINE hn::Vec<D> load_rows(D d, const std::uint8_t* const* rows, std::size_t offset) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    return hn::LoadU(d, rows[0] + offset);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_rows(half, rows + hn::MaxLanes(D()) / 32, offset),
                       load_rows(half, rows, offset));
  }
}

template <class D>
HWY_INLINE void store_rows(D d, hn::Vec<D> pixels, std::uint8_t* const* rows, std::size_t offset) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    hn::StoreU(pixels, d, rows[0] + offset);
  } else {
    const hn::Half<D> half;
    store_rows(half, hn::LowerHalf(half, pixels), rows, offset);
    store_rows(half, hn::UpperHalf(half, pixels), rows + hn::MaxLanes(D()) / 32, offset);
  }
}

HWY_INLINE V8 each_block(const std::uint8_t (&bytes)[16]) { return hn::LoadDup128(D8(), bytes); }

HWY_INLINE V16 pair_of_weights(std::int32_t weights) {
  return hn::BitCast(D16(), hn::Set(D32(), weights));
}

/// Sums of products with the high and the low halves of weights. On processors without an
/// instruction that adds two adjacent products, the `other` members have separate sums.
struct Sums {
  V32 high, high_other, low, low_other;

  // Explicit, since an implicit constructor would be compiled without the instruction set. `low`
  // begins with the half that rounds.
  HWY_INLINE Sums()
      : high(hn::Zero(D32())),
        high_other(hn::Zero(D32())),
        low(hn::Set(D32(), 1 << (ResampleAxis::precision_bits - 1))),
        low_other(hn::Zero(D32())) {}
  HWY_INLINE void add(V16 values, V16 high_weights, V16 low_weights) {
    high = hn::ReorderWidenMulAccumulate(D32(), values, high_weights, high, high_other);
    low = hn::ReorderWidenMulAccumulate(D32(), values, low_weights, low, low_other);
  }
  HWY_INLINE V32 value() const {
    const V32 sum = hn::Add(hn::RearrangeToOddPlusEven(low, low_other),
                            hn::ShiftLeft<11>(hn::RearrangeToOddPlusEven(high, high_other)));
    return hn::ShiftRight<ResampleAxis::precision_bits>(sum);
  }
};

/// Returns the values as bytes, clamped to 0 .. 255. Each block of the result has the four values
/// of that block of `a`, then those of `b`, `c` and `d`.
HWY_INLINE V8 bytes_of(V32 a, V32 b, V32 c, V32 d) {
  const V16 ab = hn::ReorderDemote2To(D16(), a, b);
  const V16 cd = hn::ReorderDemote2To(D16(), c, d);
  return narrowed_blocks(D8(), ab, cd);
}

/// A pixel in `step_rows` rows. Each block has red, green, blue and a meaningless number.
struct PixelSums {
  V32 first;
  V32 second;
};

/// Sums one pixel. `fixed_pairs` is the number of pairs of weights. If `fixed_pairs` is 0,
/// `pairs_at_run_time` is the number. Advances `weights`.
template <int fixed_pairs>
HWY_INLINE PixelSums sum_pixel(int begin, const std::int32_t*& weights, int pairs_at_run_time,
                               const std::uint8_t* const (&rows)[step_rows]) {
  // Red 0, red 1, green 0, green 1, blue 0, blue 1 of two pixels, each widened to 16 bits.
  constexpr std::uint8_t none = 0x80;
  static constexpr std::uint8_t pair_0[16] = {0, none, 3, none, 1,    none, 4,    none,
                                              2, none, 5, none, none, none, none, none};
  static constexpr std::uint8_t pair_1[16] = {6, none, 9,  none, 7,    none, 10,   none,
                                              8, none, 11, none, none, none, none, none};
  const V8 shuffle_0 = each_block(pair_0);
  const V8 shuffle_1 = each_block(pair_1);
  const auto widened = [](V8 bytes, V8 shuffle) HWY_ATTR {
    return hn::BitCast(D16(), hn::TableLookupBytesOr0(bytes, shuffle));
  };

  Sums first_sums;
  Sums second_sums;
  std::size_t offset = 3 * static_cast<std::size_t>(begin);
  const int pairs = fixed_pairs == 0 ? pairs_at_run_time : fixed_pairs;
  for (int pair = 0; pair < pairs; pair += 2, offset += 12) {
    const V8 first = load_rows(D8(), rows, offset);
    const V8 second = load_rows(D8(), rows + blocks, offset);
    const V16 high_0 = pair_of_weights(*weights++);
    const V16 low_0 = pair_of_weights(*weights++);
    first_sums.add(widened(first, shuffle_0), high_0, low_0);
    second_sums.add(widened(second, shuffle_0), high_0, low_0);
    if (pair + 1 == pairs) break;
    const V16 high_1 = pair_of_weights(*weights++);
    const V16 low_1 = pair_of_weights(*weights++);
    first_sums.add(widened(first, shuffle_1), high_1, low_1);
    second_sums.add(widened(second, shuffle_1), high_1, low_1);
  }
  return {first_sums.value(), second_sums.value()};
}

template <int fixed_pairs>
void make_rows(const PackedAxis& axis, const std::uint8_t* const* all_rows,
               std::uint8_t* const* all_made) {
  // Copies, since a stored byte might alias these pointers.
  const std::uint8_t* rows[step_rows];
  std::uint8_t* made[step_rows];
  std::copy_n(all_rows, step_rows, rows);
  std::copy_n(all_made, step_rows, made);
  const std::int32_t* weights = axis.weights.data();
  const int* begins = axis.begins.data();
  const int pairs = axis.pairs;
  const int count = axis.count;
  static constexpr std::uint8_t order[16] = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15};
  const V8 in_order = each_block(order);
  const std::size_t row_bytes = 3 * static_cast<std::size_t>(count);
  for (int pixel = 0; pixel < count; pixel += 4, begins += 4) {
    const PixelSums a = sum_pixel<fixed_pairs>(begins[0], weights, pairs, rows);
    const PixelSums b = sum_pixel<fixed_pairs>(begins[1], weights, pairs, rows);
    const PixelSums c = sum_pixel<fixed_pairs>(begins[2], weights, pairs, rows);
    const PixelSums d = sum_pixel<fixed_pairs>(begins[3], weights, pairs, rows);
    const V8 first = hn::TableLookupBytes(bytes_of(a.first, b.first, c.first, d.first), in_order);
    const V8 second =
        hn::TableLookupBytes(bytes_of(a.second, b.second, c.second, d.second), in_order);

    const std::size_t offset = 3 * static_cast<std::size_t>(pixel);
    if (offset + 16 <= row_bytes) {
      store_rows(D8(), first, made, offset);
      store_rows(D8(), second, made + blocks, offset);
    } else {  // four pixels are 12 of 16 bytes
      std::uint8_t end[step_rows][16];
      std::uint8_t* ends[step_rows];
      for (std::size_t row = 0; row < step_rows; ++row) ends[row] = end[row];
      store_rows(D8(), first, ends, 0);
      store_rows(D8(), second, ends + blocks, 0);
      for (std::size_t row = 0; row < step_rows; ++row)
        std::memcpy(made[row] + offset, end[row], std::min<std::size_t>(12, row_bytes - offset));
    }
  }
}

void make_pixels_of_rows(const PackedAxis& axis, const std::uint8_t* const* rows,
                         std::uint8_t* const* made, std::size_t count) {
  for (std::size_t begin = 0; begin < count; begin += step_rows) {
    const std::uint8_t* from[step_rows];
    std::uint8_t* to[step_rows];
    // The last step repeats its last row in place of missing ones.
    for (std::size_t row = 0; row < step_rows; ++row) {
      from[row] = rows[std::min(begin + row, count - 1)];
      to[row] = made[std::min(begin + row, count - 1)];
    }
    switch (axis.pairs) {
      case 1:
        make_rows<1>(axis, from, to);
        break;
      case 2:
        make_rows<2>(axis, from, to);
        break;
      case 3:
        make_rows<3>(axis, from, to);
        break;
      case 4:
        make_rows<4>(axis, from, to);
        break;
      default:
        make_rows<0>(axis, from, to);
    }
  }
}

/// Returns one vector of bytes of the made row, from byte `offset` on.
HWY_INLINE V8 sum_column(const std::int32_t* weights, int pairs, const std::uint8_t* const* rows,
                         std::size_t offset) {
  Sums sums[4];
  const auto add = [&](int pair) HWY_ATTR {
    const V8 zero = hn::Zero(D8());
    const V8 upper = hn::LoadU(D8(), rows[2 * pair] + offset);
    const V8 lower = hn::LoadU(D8(), rows[2 * pair + 1] + offset);
    const V16 high = pair_of_weights(weights[2 * pair]);
    const V16 low = pair_of_weights(weights[2 * pair + 1]);
    const V8 left = hn::InterleaveLower(D8(), upper, lower);
    const V8 right = hn::InterleaveUpper(D8(), upper, lower);
    sums[0].add(hn::BitCast(D16(), hn::InterleaveLower(D8(), left, zero)), high, low);
    sums[1].add(hn::BitCast(D16(), hn::InterleaveUpper(D8(), left, zero)), high, low);
    sums[2].add(hn::BitCast(D16(), hn::InterleaveLower(D8(), right, zero)), high, low);
    sums[3].add(hn::BitCast(D16(), hn::InterleaveUpper(D8(), right, zero)), high, low);
  };
  add(0);  // outside the loop: the compiler leaves out what is added to zero
  for (int pair = 1; pair < pairs; ++pair) add(pair);
  return bytes_of(sums[0].value(), sums[1].value(), sums[2].value(), sums[3].value());
}

#endif

void make_weighted_row(const std::int32_t* weights, int pairs, const std::uint8_t* const* rows,
                       std::uint8_t* made, std::size_t bytes) {
#if HWY_TARGET != HWY_SCALAR
  if (bytes >= vector_bytes) {
    for (std::size_t byte = 0; byte < bytes; byte += vector_bytes) {
      const std::size_t offset = std::min(byte, bytes - vector_bytes);
      hn::StoreU(sum_column(weights, pairs, rows, offset), D8(), made + offset);
    }
    return;
  }
#endif
  for (std::size_t byte = 0; byte < bytes; ++byte)
    made[byte] = one_value(weights, pairs, [&](int tap) { return rows[tap][byte]; });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {

HWY_EXPORT(make_pixels_of_rows);
HWY_EXPORT(make_weighted_row);

}  // namespace

void horizontal_pass(const PackedAxis& axis, const std::uint8_t* const* rows,
                     std::uint8_t* const* made, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(make_pixels_of_rows)(axis, rows, made, count);
}

void vertical_pass(const std::int32_t* weights, int pairs, const std::uint8_t* const* rows,
                   std::uint8_t* made, std::size_t bytes) {
  HWY_DYNAMIC_DISPATCH(make_weighted_row)(weights, pairs, rows, made, bytes);
}

}  // namespace millrace
#endif
