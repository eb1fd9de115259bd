// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h), without fused
// multiply-adds, which would give other weights.
#include "resample/bilinear.h"

#include <algorithm>
#include <cmath>

// Disables instruction sets whose vector size is unknown at compile time.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "resample/bilinear.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, 8>;
using D32 = hn::Rebind<std::int32_t, D>;
using V = hn::Vec<D>;

void weigh_pixels(const ResampleAxis::Wanted& wanted, double scale, BilinearWeights& made) {
  constexpr auto step = static_cast<int>(hn::MaxLanes(D()));
  const D d;
  const D32 d32;
  const V half = hn::Set(d, 0.5);
  const V one = hn::Set(d, 1.0);
  const V reach = hn::Set(d, std::max(scale, 1.0));
  const V inverse = hn::Set(d, 1.0 / std::max(scale, 1.0));
  for (int place = 0; place < wanted.count; place += step) {
    const V steps = hn::Iota(d, 0);
    const V pixels = wanted.mirrored
                         ? hn::Sub(hn::Set(d, wanted.begin + wanted.count - 1 - place), steps)
                         : hn::Add(hn::Set(d, wanted.begin + place), steps);
    const V centre = hn::Add(hn::Set(d, static_cast<double>(wanted.low)),
                             hn::Mul(hn::Add(pixels, half), hn::Set(d, scale)));
    // The conversions to integers truncate, as in Pillow.
    const auto low = hn::DemoteTo(d32, hn::Add(hn::Sub(centre, reach), half));
    const auto high = hn::DemoteTo(d32, hn::Add(hn::Add(centre, reach), half));
    const auto begin = hn::Max(low, hn::Zero(d32));
    const auto end = hn::Min(high, hn::Set(d32, wanted.from));
    const V taps = hn::PromoteTo(d, hn::Sub(end, begin));
    hn::StoreU(begin, d32, made.begins.data() + place);
    V sum = hn::Zero(d);
    double* shares = made.shares.data();
    for (int tap = 0; tap < made.taps; ++tap, shares += step) {
      const V source = hn::PromoteTo(d, hn::Add(begin, hn::Set(d32, tap)));
      const V x = hn::Abs(hn::Mul(hn::Add(hn::Sub(source, centre), half), inverse));
      const V share = hn::IfThenElseZero(hn::And(hn::Lt(x, one), hn::Lt(hn::Set(d, tap), taps)),
                                         hn::Sub(one, x));
      hn::StoreU(share, d, shares);
      sum = hn::Add(sum, share);
    }
    sum = hn::IfThenElse(hn::Eq(sum, hn::Zero(d)), one, sum);
    const V unit = hn::Set(d, 1 << ResampleAxis::precision_bits);
    shares = made.shares.data();
    std::int32_t* weights = made.weights.data() + place;
    auto length = hn::Zero(d32);
    for (int tap = 0; tap < made.taps; ++tap, shares += step, weights += made.stride) {
      const auto weight =
          hn::DemoteTo(d32, hn::Add(half, hn::Mul(hn::Div(hn::LoadU(d, shares), sum), unit)));
      const auto zero = hn::Eq(weight, hn::Zero(d32));
      hn::StoreU(weight, d32, weights);
      length = hn::IfThenElse(zero, length, hn::Set(d32, tap + 1));
      if (tap == 0 && !hn::AllFalse(d32, zero)) made.leading_zeros = true;
    }
    hn::StoreU(length, d32, made.lengths.data() + place);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {

HWY_EXPORT(weigh_pixels);

}  // namespace

void weigh_bilinearly(const ResampleAxis::Wanted& wanted, double scale, BilinearWeights& made) {
  constexpr std::size_t max_step = 8;
  // A pixel's source pixels lie within twice the reach. Rounding may add one if that is an integer.
  constexpr double rounding = 1e-6;
  made.taps = static_cast<int>(2 * std::max(scale, 1.0) + rounding) + 1;
  made.leading_zeros = false;
  // The last vector may reach beyond the last pixel.
  made.stride = static_cast<std::size_t>(wanted.count) + max_step;
  const auto lists = static_cast<std::size_t>(made.taps);
  made.begins.resize(std::max(made.begins.size(), made.stride));
  made.lengths.resize(made.begins.size());
  made.weights.resize(std::max(made.weights.size(), lists * made.stride));
  made.shares.resize(std::max(made.shares.size(), lists * max_step));
  HWY_DYNAMIC_DISPATCH(weigh_pixels)(wanted, scale, made);
}

}  // namespace millrace
#endif
