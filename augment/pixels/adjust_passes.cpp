// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h), without fused multiply-adds,
// so that all sets give the same bits.
#include "pixels/adjust_passes.h"

#include <algorithm>
#include <array>
#include <cmath>

// Disables instruction sets whose vector size is unknown at compile time.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pixels/adjust_passes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pixels/hue-inl.h"
#include "pixels/pixels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

/// Applies a step to one pixel: for processors without vectors, and for the last pixels.
HWY_INLINE void take_step_at(std::uint8_t* pixel, const Step& step) {
  if (step.kind == Step::Kind::hue) return shift_hue(pixel, step.shift);
  const int base = step.kind == Step::Kind::grey ? luma(pixel[0], pixel[1], pixel[2]) : step.base;
  for (int channel = 0; channel < 3; ++channel)
    pixel[channel] = blended(base, pixel[channel], step.slope.factor);
}

HWY_INLINE std::uint64_t take_steps_at(std::uint8_t* pixels, std::size_t count,
                                       std::span<const Step> steps) {
  std::uint64_t sum = 0;
  for (std::uint8_t* pixel = pixels; count > 0; --count, pixel += 3) {
    for (const Step& step : steps) take_step_at(pixel, step);
    sum += static_cast<std::uint64_t>(luma(pixel[0], pixel[1], pixel[2]));
  }
  return sum;
}

HWY_INLINE std::uint8_t sharpened(int sum, std::uint8_t level, const Slope& slope) {
  return blended((sum + 6) / 13, level, slope.factor);
}

#if HWY_TARGET == HWY_SCALAR

std::uint64_t take_all_steps(std::uint8_t* pixels, std::size_t count, std::span<const Step> steps,
                             Pass) {
  return take_steps_at(pixels, count, steps);
}

#else

/// Returns the luma as green plus weighted differences from green, since the weights add up to
/// 65536.
HWY_INLINE V16 luma_of(const Pixels16& pixels) {
  const V16 weights = hn::BitCast(D16(), hn::Set(D32(), 19595 | 7471 << 16));
  const V16 red = hn::Sub(pixels.red, pixels.green);
  const V16 blue = hn::Sub(pixels.blue, pixels.green);
  const auto part = [&](V16 red_blue) HWY_ATTR {
    V32 other = hn::Zero(D32());
    const V32 sums =
        hn::ReorderWidenMulAccumulate(D32(), red_blue, weights, hn::Zero(D32()), other);
    return hn::ShiftRight<16>(
        hn::Add(hn::RearrangeToOddPlusEven(sums, other), hn::Set(D32(), 0x8000)));
  };
  return hn::Add(pixels.green,
                 hn::ReorderDemote2To(D16(), part(hn::InterleaveLower(D16(), red, blue)),
                                      part(hn::InterleaveUpper(D16(), red, blue))));
}

/// Use of a step's results: stored as bytes, which clamps them to 0 .. 255, or input of a
/// computation.
enum class Next { stored, computed };

HWY_INLINE Pixels16 blended_with(const Slope& slope, V16 base, const Pixels16& pixels, Next next) {
  const Pixels16 made{blend(slope, base, pixels.red), blend(slope, base, pixels.green),
                      blend(slope, base, pixels.blue)};
  if (next == Next::stored) return made;
  return {cut(slope, made.red), cut(slope, made.green), cut(slope, made.blue)};
}

HWY_INLINE Pixels16 after(const Step& step, const Pixels16& pixels, Next next) {
  switch (step.kind) {
    case Step::Kind::level: {
      const V16 base = hn::Set(D16(), static_cast<std::int16_t>(step.base));
      return blended_with(step.slope, base, pixels, next);
    }
    case Step::Kind::grey:
      return blended_with(step.slope, luma_of(pixels), pixels, next);
    case Step::Kind::hue:
      return hue_shifted(pixels, hn::Set(D16(), step.shift));
  }
  return pixels;
}

std::uint64_t take_all_steps(std::uint8_t* pixels, std::size_t count, std::span<const Step> steps,
                             Pass pass) {
  const hn::ScalableTag<std::uint64_t> d64;
  auto luma_sums = hn::Zero(d64);
  std::size_t done = 0;
  for (; done + group_size <= count; done += group_size) {
    std::uint8_t* at = pixels + 3 * done;
    Group group = pass.from_planes ? load_planes(at) : load_pixels(at);
    for (std::size_t n = 0; n < steps.size(); ++n) {
      const bool last = n + 1 == steps.size() && !pass.sums;
      const Next next = last && cut_when_stored ? Next::stored : Next::computed;
      group.low = after(steps[n], group.low, next);
      group.high = after(steps[n], group.high, next);
    }
    if (pass.sums) {
      luma_sums =
          hn::Add(luma_sums, hn::SumsOf8(narrowed({luma_of(group.low), luma_of(group.high)})));
      store_planes(group, at);
    } else {
      store_pixels(group, at);
    }
  }
  return hn::GetLane(hn::SumOfLanes(d64, luma_sums)) +
         take_steps_at(pixels + 3 * done, count - done, steps);
}

/// Sharpens levels. Each of `sums` is a weighted sum of a level and its neighbours, with weights
/// that add up to 13. The mean is (sum + 6) / 13, that is sum / 13 rounded.
HWY_INLINE V16 sharpen_levels(V16 sums, V16 levels, const Slope& slope) {
  const DU16 du;
  const auto thirteenth =
      hn::MulHigh(hn::BitCast(du, hn::Add(sums, hn::Set(D16(), 6))), hn::Set(du, 5042));
  return blend(slope, hn::BitCast(D16(), thirteenth), levels);
}

#endif

void sharpen(const std::uint8_t* HWY_RESTRICT above, const std::uint8_t* HWY_RESTRICT at,
             const std::uint8_t* HWY_RESTRICT below, std::uint8_t* HWY_RESTRICT made,
             std::uint16_t* HWY_RESTRICT sums, std::size_t width, const Slope& given) {
  const Slope slope = given;  // a copy, since a stored byte might alias the argument
  const std::size_t bytes = 3 * width;
  for (std::size_t byte = 0; byte < bytes; ++byte)
    sums[byte] = static_cast<std::uint16_t>(above[byte] + at[byte] + below[byte]);
  std::size_t byte = 3;
#if HWY_TARGET != HWY_SCALAR
  constexpr std::size_t lanes = hn::MaxLanes(D8());
  constexpr std::size_t half = lanes / 2;
  const auto sum = [&](std::size_t first, V16 level) HWY_ATTR {
    const DU16 du;
    const auto row = hn::Add(hn::Add(hn::LoadU(du, sums + first - 3), hn::LoadU(du, sums + first)),
                             hn::LoadU(du, sums + first + 3));
    return hn::Add(hn::BitCast(D16(), row), hn::ShiftLeft<2>(level));
  };
  for (; byte + lanes + 3 <= bytes; byte += lanes) {
    const hn::Half<D8> d_half;
    const V16 low = hn::PromoteTo(D16(), hn::LoadU(d_half, at + byte));
    const V16 high = hn::PromoteTo(D16(), hn::LoadU(d_half, at + byte + half));
    const V16 made_low = sharpen_levels(sum(byte, low), low, slope);
    const V16 made_high = sharpen_levels(sum(byte + half, high), high, slope);
    hn::StoreU(hn::DemoteTo(d_half, made_low), d_half, made + byte);
    hn::StoreU(hn::DemoteTo(d_half, made_high), d_half, made + byte + half);
  }
#endif
  for (; byte + 3 < bytes; ++byte)
    made[byte] =
        sharpened(sums[byte - 3] + sums[byte] + sums[byte + 3] + 4 * at[byte], at[byte], slope);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {

HWY_EXPORT(take_all_steps);
HWY_EXPORT(sharpen);

}  // namespace

std::uint64_t take_steps(std::uint8_t* pixels, std::size_t count, std::span<const Step> steps,
                         Pass pass) {
  return HWY_DYNAMIC_DISPATCH(take_all_steps)(pixels, count, steps, pass);
}

void sharpen_row(const std::uint8_t* above, const std::uint8_t* at, const std::uint8_t* below,
                 std::uint8_t* made, std::uint16_t* sums, std::size_t width, const Slope& slope) {
  HWY_DYNAMIC_DISPATCH(sharpen)(above, at, below, made, sums, width, slope);
}

}  // namespace millrace
#endif
