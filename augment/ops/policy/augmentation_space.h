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

/// An operation of a policy and its possible magnitudes.
struct Augmenting {
  Augmentation what;
  /// The first and the last magnitude. Both are 0 for an operation without magnitudes.
  double first = 0;
  double last = 0;
  /// The length of which the magnitudes are fractions.
  enum class Of { one, width, height } of = Of::one;
  /// Whether the sign of a magnitude is drawn.
  bool has_sign = false;

  bool has_magnitudes() const { return first != last; }
  /// Returns magnitude number `bin` of `bins` >= 2 evenly spaced ones. It is a float32, as from
  /// `torch.linspace`. The last bit of torch's depends on the processor. `posterize` has whole
  /// magnitudes.
  double magnitude(int bin, int bins, Size image) const;
};

/// The operations that `RandAugment` draws from. `AutoAugment` draws from the same and one more at
/// the end.
std::span<const Augmenting> rand_augment_space();
std::span<const Augmenting> auto_augment_space();
std::span<const Augmenting> trivial_augment_wide_space();
/// The operations of `AugMix`. `all` adds brightness, contrast, saturation and sharpness.
std::span<const Augmenting> aug_mix_space(bool all);

/// The filter and the border's colour of operations that move pixels.
struct Warping {
  Interpolation interpolation;
  Colour fill;
};

/// Runs one operation of a policy at a magnitude. Source: `_apply_op` in torchvision's
/// autoaugment.py.
void augment(SampleImage& image, Augmentation what, double magnitude, const Warping& warping);

/// Returns the scratch of `augment`, whatever it runs.
ScratchSizes augment_scratch(Size size);

/// Runs an operation at magnitude number `bin` of `bins`. Draws the sign if the magnitude has one.
void augment_at(SampleImage& image, const Augmenting& what, int bin, int bins,
                const Warping& warping, Random& random);

}  // namespace millrace
