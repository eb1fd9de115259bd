// SPDX-License-Identifier: Apache-2.0
//
// The operations of torchvision's policies and their magnitudes.
#pragma once

#include <cstdint>
#include <span>

#include "ops/image_operation.h"

namespace millrace {

enum class Augmentation {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  auto_contrast,
  equalize,
  invert,
};

/// One operation of a policy and the magnitudes that it may have.
struct Augmenting {
  Augmentation what;
  /// The first and the last magnitude; both 0 where there are none.
  double first = 0;
  double last = 0;
  /// What these are shares of.
  enum class Of { one, width, height } of = Of::one;
  /// Whether a magnitude may be taken with a minus.
  bool has_sign = false;

  bool has_magnitudes() const { return first != last; }
  /// Number `bin` of `bins` >= 2 magnitudes that are evenly apart, a float32 as of
  /// `torch.linspace`, whose last bit depends on the processor. `posterize` has whole ones.
  double magnitude(int bin, int bins, Size image) const;
};

/// What `RandAugment` draws from, as well as, with one more at its end, `AutoAugment`.
std::span<const Augmenting> rand_augment_space();
std::span<const Augmenting> auto_augment_space();
std::span<const Augmenting> trivial_augment_wide_space();
/// `all` adds brightness, contrast, saturation and sharpness.
std::span<const Augmenting> aug_mix_space(bool all);

/// How what moves pixels makes new ones.
struct Warping {
  Interpolation interpolation;
  Colour fill;
};

/// One operation of a policy at a magnitude. Source: `_apply_op` in torchvision's autoaugment.py.
void augment(SampleImage& image, Augmentation what, double magnitude, const Warping& warping);

/// The same with a magnitude of number `bin` of `bins`, whose sign is drawn if it has one.
void augment_at(SampleImage& image, const Augmenting& what, int bin, int bins,
                const Warping& warping, Random& random);

}  // namespace millrace
