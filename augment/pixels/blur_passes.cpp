// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h), without fused multiply-adds,
// so that all sets give the same bits. The compiler vectorises the loops without explicit vectors.
#include "pixels/blur_passes.h"

#include <algorithm>

#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pixels/blur_passes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;

constexpr std::size_t lanes = hn::MaxLanes(DF());
static_assert(2 * lanes <= blur_slack);

/// Result of `weighted`: two vectors of weighted sums. Its `row(n)` points to the values n steps
/// ahead.
struct Blurred {
  VF first, second;
};

template <class Row>
HWY_INLINE Blurred weighted(std::span<const float> weights, Row row) {
  const DF d;
  const VF middle = hn::Set(d, weights[0]);
  Blurred sums{hn::Mul(hn::LoadU(d, row(0)), middle),
               hn::Mul(hn::LoadU(d, row(0) + lanes), middle)};
  for (std::size_t n = 1; n < weights.size(); ++n) {
    const VF weight = hn::Set(d, weights[n]);
    const float* before = row(-static_cast<std::ptrdiff_t>(n));
    const float* behind = row(static_cast<std::ptrdiff_t>(n));
    const VF first = hn::Add(hn::LoadU(d, before), hn::LoadU(d, behind));
    const VF second = hn::Add(hn::LoadU(d, before + lanes), hn::LoadU(d, behind + lanes));
    sums.first = hn::Add(sums.first, hn::Mul(first, weight));
    sums.second = hn::Add(sums.second, hn::Mul(second, weight));
  }
  return sums;
}

void weigh_row(const float* values, std::size_t step, std::span<const float> weights, float* made,
               std::size_t count) {
  const auto apart = static_cast<std::ptrdiff_t>(step);
  for (std::size_t at = 0; at < count; at += 2 * lanes) {
    const Blurred sums =
        weighted(weights, [&](std::ptrdiff_t n) HWY_ATTR { return values + at + n * apart; });
    hn::StoreU(sums.first, DF(), made + at);
    hn::StoreU(sums.second, DF(), made + at + lanes);
  }
}

void weigh_column(const float* const* rows, std::span<const float> weights, std::uint8_t* made,
                  std::size_t count) {
  const float* const* const middle = rows + (weights.size() - 1);
  const hn::Rebind<std::uint8_t, DF> d8;
  for (std::size_t at = 0; at < count; at += 2 * lanes) {
    const Blurred sums =
        weighted(weights, [&](std::ptrdiff_t n) HWY_ATTR { return middle[n] + at; });
    std::uint8_t levels[2 * lanes];
    std::uint8_t* const to = at + 2 * lanes <= count ? made + at : levels;
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(sums.first)), d8, to);
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(sums.second)), d8, to + lanes);
    if (to == levels) std::copy_n(levels, count - at, made + at);
  }
}

HWY_INLINE std::uint8_t boxed(std::uint32_t sum, std::uint32_t ends, const BlurBox& box) {
  return static_cast<std::uint8_t>((sum * box.weight + ends * box.end_weight + (1U << 23U)) >> 24U);
}

void box_row(const std::uint8_t* row, const BlurBox& given, std::uint32_t* HWY_RESTRICT sums,
             std::uint8_t* HWY_RESTRICT made, std::size_t count) {
  const BlurBox box = given;
  for (std::size_t n = 0; n < count; ++n) sums[n] = row[3 + n];
  for (std::size_t place = 2; place <= 2 * box.radius + 1; ++place)
    for (std::size_t n = 0; n < count; ++n) sums[n] += row[3 * place + n];
  const std::uint8_t* last = row + 6 * (box.radius + 1);
  for (std::size_t n = 0; n < count; ++n)
    made[n] = boxed(sums[n], std::uint32_t{row[n]} + last[n], box);
}

void move_columns(const std::uint8_t* add, const std::uint8_t* take,
                  std::uint32_t* HWY_RESTRICT sums, std::size_t count) {
  for (std::size_t n = 0; n < count; ++n) sums[n] += std::uint32_t{add[n]} - take[n];
}

void box_column(const std::uint32_t* sums, const std::uint8_t* first, const std::uint8_t* last,
                const BlurBox& given, std::uint8_t* HWY_RESTRICT made, std::size_t count) {
  const BlurBox box = given;
  for (std::size_t n = 0; n < count; ++n)
    made[n] = boxed(sums[n], std::uint32_t{first[n]} + last[n], box);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {

HWY_EXPORT(weigh_row);
HWY_EXPORT(weigh_column);
HWY_EXPORT(box_row);
HWY_EXPORT(move_columns);
HWY_EXPORT(box_column);

}  // namespace

void blur_row(const float* row, std::size_t step, std::span<const float> weights, float* made,
              std::size_t count) {
  HWY_DYNAMIC_DISPATCH(weigh_row)(row, step, weights, made, count);
}

void blur_column(const float* const* rows, std::span<const float> weights, std::uint8_t* made,
                 std::size_t count) {
  HWY_DYNAMIC_DISPATCH(weigh_column)(rows, weights, made, count);
}

void box_blur_row(const std::uint8_t* row, const BlurBox& box, std::uint32_t* sums,
                  std::uint8_t* made, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(box_row)(row, box, sums, made, count);
}

void move_box(const std::uint8_t* add, const std::uint8_t* take, std::uint32_t* sums,
              std::size_t count) {
  HWY_DYNAMIC_DISPATCH(move_columns)(add, take, sums, count);
}

void box_blur_column(const std::uint32_t* sums, const std::uint8_t* first, const std::uint8_t* last,
                     const BlurBox& box, std::uint8_t* made, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(box_column)(sums, first, last, box, made, count);
}

}  // namespace millrace
#endif
