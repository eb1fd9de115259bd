// SPDX-License-Identifier: Apache-2.0
#include "ops/policy/augmentation_space.h"

#include <cmath>
#include <numbers>

#include "ops/warp/warp_parameters.h"
#include "pixels/adjust.h"
#include "pixels/levels.h"
#include "pixels/warp.h"

namespace millrace {
namespace {

using What = Augmentation;
using Of = Augmenting::Of;

constexpr Augmenting auto_space[] = {
    {What::identity},
    {What::shear_x, 0, 0.3, Of::one, true},
    {What::shear_y, 0, 0.3, Of::one, true},
    {What::translate_x, 0, 150.0 / 331.0, Of::width, true},
    {What::translate_y, 0, 150.0 / 331.0, Of::height, true},
    {What::rotate, 0, 30, Of::one, true},
    {What::brightness, 0, 0.9, Of::one, true},
    {What::color, 0, 0.9, Of::one, true},
    {What::contrast, 0, 0.9, Of::one, true},
    {What::sharpness, 0, 0.9, Of::one, true},
    {What::posterize, 8, 4},
    {What::solarize, 255, 0},
    {What::auto_contrast},
    {What::equalize},
    {What::invert},
};

constexpr Augmenting wide_space[] = {
    {What::identity},
    {What::shear_x, 0, 0.99, Of::one, true},
    {What::shear_y, 0, 0.99, Of::one, true},
    {What::translate_x, 0, 32, Of::one, true},
    {What::translate_y, 0, 32, Of::one, true},
    {What::rotate, 0, 135, Of::one, true},
    {What::brightness, 0, 0.99, Of::one, true},
    {What::color, 0, 0.99, Of::one, true},
    {What::contrast, 0, 0.99, Of::one, true},
    {What::sharpness, 0, 0.99, Of::one, true},
    {What::posterize, 8, 2},
    {What::solarize, 255, 0},
    {What::auto_contrast},
    {What::equalize},
};

constexpr std::size_t few_mixed = 9;
constexpr Augmenting mix_space[] = {
    {What::shear_x, 0, 0.3, Of::one, true},
    {What::shear_y, 0, 0.3, Of::one, true},
    {What::translate_x, 0, 1.0 / 3, Of::width, true},
    {What::translate_y, 0, 1.0 / 3, Of::height, true},
    {What::rotate, 0, 30, Of::one, true},
    {What::posterize, 4, 0},
    {What::solarize, 255, 0},
    {What::auto_contrast},
    {What::equalize},
    {What::brightness, 0, 0.9, Of::one, true},
    {What::color, 0, 0.9, Of::one, true},
    {What::contrast, 0, 0.9, Of::one, true},
    {What::sharpness, 0, 0.9, Of::one, true},
};

double degrees(double radians) { return radians * (180 / std::numbers::pi); }

}  // namespace

double Augmenting::magnitude(int bin, int bins, Size image) const {
  if (!has_magnitudes()) return 0;
  if (what == What::posterize) {
    const auto width = static_cast<float>((bins - 1) / (first - last));
    return first - std::nearbyint(static_cast<float>(bin) / width);
  }
  const int whole = of == Of::width ? image.width : of == Of::height ? image.height : 1;
  const auto begin = static_cast<float>(first * whole);
  const auto end = static_cast<float>(last * whole);
  const float step = (end - begin) / static_cast<float>(bins - 1);
  return bin < bins / 2 ? begin + step * static_cast<float>(bin)
                        : end - step * static_cast<float>(bins - 1 - bin);
}

std::span<const Augmenting> auto_augment_space() { return auto_space; }
std::span<const Augmenting> rand_augment_space() {
  return auto_augment_space().first(std::size(auto_space) - 1);
}
std::span<const Augmenting> trivial_augment_wide_space() { return wide_space; }
std::span<const Augmenting> aug_mix_space(bool all) {
  return std::span(mix_space).first(all ? std::size(mix_space) : few_mixed);
}

void augment(SampleImage& image, Augmentation what, double magnitude, const Warping& warping) {
  const std::span pixels(image.pixels, image.bytes());
  const auto warped = [&](const AffineMap& map) {
    remake(image, [&](const std::uint8_t* copy) {
      warp(copy, image.size, map, warping.interpolation, warping.fill, image.pixels);
    });
  };
  // Shears do not move the upper left corner.
  const double shear = degrees(std::atan(magnitude));
  switch (what) {
    case What::identity:
      return;
    case What::shear_x:
      return warped(affine_map({0, 0}, 0, {0, 0}, 1, {shear, 0}));
    case What::shear_y:
      return warped(affine_map({0, 0}, 0, {0, 0}, 1, {0, shear}));
    case What::translate_x:
      return warped(affine_map(middle(image.size), 0, {std::trunc(magnitude), 0}, 1, {0, 0}));
    case What::translate_y:
      return warped(affine_map(middle(image.size), 0, {0, std::trunc(magnitude)}, 1, {0, 0}));
    case What::rotate:
      return remake(image, [&](const std::uint8_t* copy) {
        rotate(copy, image.size, magnitude, warping.interpolation, warping.fill, image.pixels);
      });
    case What::brightness:
      return adjust(pixels, Property::brightness, 1.0 + magnitude);
    case What::color:
      return adjust(pixels, Property::saturation, 1.0 + magnitude);
    case What::contrast:
      return adjust(pixels, Property::contrast, 1.0 + magnitude);
    case What::sharpness: {
      const Scratch::Borrowed memory = image.scratch.borrow(sharpness_memory(image.size));
      return adjust_sharpness(image.pixels, image.size, 1.0 + magnitude, memory.bytes());
    }
    case What::posterize:
      return posterize(pixels, static_cast<int>(magnitude));
    case What::solarize:
      return solarize(pixels, magnitude);
    case What::auto_contrast:
      return autocontrast(pixels);
    case What::equalize:
      return equalize(pixels);
    case What::invert:
      return invert(pixels);
  }
}

ScratchSizes augment_scratch(Size size) {
  ScratchSizes sizes = remake_scratch(size);
  enlarge(sizes, {sharpness_memory(size)});
  return sizes;
}

void augment_at(SampleImage& image, const Augmenting& what, int bin, int bins,
                const Warping& warping, Random& random) {
  const double magnitude = what.magnitude(bin, bins, image.size);
  const bool minus = what.has_sign && random.below(2) == 1;
  augment(image, what.what, minus ? -magnitude : magnitude, warping);
}

}  // namespace millrace
