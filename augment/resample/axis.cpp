// SPDX-License-Identifier: Apache-2.0
//
// Compiled without fused multiply-adds, which would give other weights.
#include <millrace/detail/resample.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "resample/bilinear.h"

namespace millrace {
namespace {

double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double hamming(double x) {
  x = std::abs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x = x * std::numbers::pi;
  // Pillow's two constants have single precision.
  return std::sin(x) / x * (double{0.54F} + double{0.46F} * std::cos(x));
}

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x = x * std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

constexpr double unit = 1 << ResampleAxis::precision_bits;

std::int32_t fixed_point(double share) {
  return static_cast<std::int32_t>((share < 0 ? -0.5 : 0.5) + share * unit);
}

/// Returns the scale. The difference of the edges has single precision, as in Pillow.
double scale_of(const ResampleAxis::Wanted& wanted) {
  return static_cast<double>(wanted.high - wanted.low) / wanted.to;
}

/// Returns the pixel of the resized axis at a place in the window.
int pixel_at(const ResampleAxis::Wanted& wanted, int place) {
  return wanted.begin + (wanted.mirrored ? wanted.count - 1 - place : place);
}

}  // namespace

void ResampleAxis::make(const Wanted& wanted) {
  begins_.resize(static_cast<std::size_t>(wanted.count));
  first_ = wanted.from;
  end_ = 0;
  taps_ = 1;
  switch (wanted.interpolation) {
    case Interpolation::bilinear:
      weigh_bilinear(wanted);
      break;
    case Interpolation::bicubic:
      weigh(wanted, 2.0, [](double x) { return bicubic(x); });
      break;
    case Interpolation::box:
      weigh(wanted, 0.5, [](double x) { return box(x); });
      break;
    case Interpolation::hamming:
      weigh(wanted, 1.0, [](double x) { return hamming(x); });
      break;
    case Interpolation::lanczos:
      weigh(wanted, 3.0, [](double x) { return lanczos(x); });
      break;
    case Interpolation::nearest:
      pick_nearest(wanted);
      break;
  }
  if (wanted.stored_backwards) reverse_source(wanted.from);
  for (int& begin : begins_) begin -= first_;
}

void ResampleAxis::reverse_source(int from) {
  for (std::size_t place = 0; place < begins_.size(); ++place) {
    std::int32_t* weights = &weights_[stride_ * place];
    int length = taps_;
    while (length > 1 && weights[length - 1] == 0) --length;
    std::reverse(weights, weights + length);
    begins_[place] = from - begins_[place] - length;
  }
  first_ = from - std::exchange(end_, from - first_);
}

void ResampleAxis::weigh_bilinear(const Wanted& wanted) {
  weigh_bilinearly(wanted, scale_of(wanted), bilinear_);
  const auto taps = static_cast<std::size_t>(bilinear_.taps);
  const std::size_t apart = bilinear_.stride;
  const std::size_t places = begins_.size();
  stride_ = taps;
  weights_.resize(taps * places);
  std::int32_t* const weights = weights_.data();
  for (std::size_t place = 0; place < places; ++place) {
    const std::int32_t* const from = bilinear_.weights.data() + place;
    for (std::size_t tap = 0; tap < taps; ++tap) weights[place * taps + tap] = from[tap * apart];
  }
  std::int32_t* const begins = bilinear_.begins.data();
  std::int32_t* const lengths = bilinear_.lengths.data();
  for (std::size_t place = 0; bilinear_.leading_zeros && place < places; ++place) {
    std::int32_t* const own = weights + place * taps;
    if (lengths[place] == 0 || own[0] != 0) continue;
    const auto zeros = std::find_if(own, own + taps, [](auto one) { return one != 0; }) - own;
    std::rotate(own, own + zeros, own + lengths[place]);
    begins[place] += static_cast<std::int32_t>(zeros);
    lengths[place] -= static_cast<std::int32_t>(zeros);
  }
  // In registers: a store of an integer might change a member.
  int most = taps_, first = first_, end = end_;
  for (std::size_t place = 0; place < places; ++place) {
    begins_[place] = begins[place];
    most = std::max(most, lengths[place]);
    first = std::min(first, begins[place]);
    end = std::max(end, begins[place] + std::max(lengths[place], 1));
  }
  taps_ = most;
  first_ = first;
  end_ = end;
}

template <typename Filter>
void ResampleAxis::weigh(const Wanted& wanted, double support, Filter filter) {
  const double scale = scale_of(wanted);
  const double filter_scale = std::max(scale, 1.0);
  const double reach = support * filter_scale;
  const double inverse = 1.0 / filter_scale;
  stride_ = static_cast<std::size_t>(std::ceil(reach)) * 2 + 1;
  weights_.assign(stride_ * begins_.size(), 0);
  shares_.resize(stride_);
  for (int place = 0; place < wanted.count; ++place) {
    const double centre = wanted.low + (pixel_at(wanted, place) + 0.5) * scale;
    // The conversions to `int` truncate, as in Pillow.
    const double low = centre - reach + 0.5;
    const double high = centre + reach + 0.5;
    const int begin = std::max(static_cast<int>(low), 0);
    const int end = std::min(static_cast<int>(high), wanted.from);
    double sum = 0;
    for (int tap = 0; tap < end - begin; ++tap) {
      const double share = filter((tap + begin - centre + 0.5) * inverse);
      shares_[static_cast<std::size_t>(tap)] = share;
      sum += share;
    }
    if (sum == 0.0) sum = 1.0;
    std::int32_t* weights = &weights_[stride_ * static_cast<std::size_t>(place)];
    int zeros = 0;  // before the first weight
    int length = 0;
    for (int tap = 0; tap < end - begin; ++tap) {
      const std::int32_t weight = fixed_point(shares_[static_cast<std::size_t>(tap)] / sum);
      if (weight == 0 && zeros == tap) {
        ++zeros;
        continue;
      }
      weights[tap - zeros] = weight;
      if (weight != 0) length = tap - zeros + 1;
    }
    add(place, length == 0 ? begin : begin + zeros, length);
  }
}

void ResampleAxis::add(int place, int begin, int length) {
  begins_[static_cast<std::size_t>(place)] = begin;
  taps_ = std::max(taps_, length);
  first_ = std::min(first_, begin);
  end_ = std::max(end_, begin + std::max(length, 1));
}

void ResampleAxis::pick_nearest(const Wanted& wanted) {
  stride_ = 1;
  weights_.assign(begins_.size(), std::int32_t{1} << precision_bits);
  const double scale = scale_of(wanted);
  double position = wanted.low + scale * 0.5;
  // Adds up the steps as Pillow does: the rounding errors of the sum decide ties.
  for (int pixel = 0; pixel < wanted.begin; ++pixel) position += scale;
  for (int n = 0; n < wanted.count; ++n, position += scale)
    add(wanted.mirrored ? wanted.count - 1 - n : n,
        std::min(static_cast<int>(position), wanted.from - 1), 1);
}

}  // namespace millrace
