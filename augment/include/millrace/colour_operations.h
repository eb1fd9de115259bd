// SPDX-License-Identifier: Apache-2.0
//
// Operations on the colours of a sample's image: their parameters, in torchvision's names. These
// are values: they may be copied, and read from any thread.
//
// The pixels equal those that torchvision makes from PIL images, to the bit; `GaussianBlur` states
// its exceptions. Each operation draws new parameters for every sample, uniformly from their
// ranges.
#pragma once

#include <millrace/operation.h>

#include <algorithm>

namespace MILLRACE_API millrace {

/// Changes brightness, contrast, saturation and hue, in random order: torchvision's `ColorJitter`.
struct ColorJitter {
  /// Factors from 0 to 1,000,000. The range [1, 1] leaves the property unchanged.
  Range brightness{1, 1};
  Range contrast{1, 1};
  Range saturation{1, 1};
  /// Shifts of the hue, -0.5 to 0.5 of the colour circle. The range [0, 0] leaves the hue
  /// unchanged.
  Range hue{0, 0};

  /// Makes the ranges that torchvision makes of single numbers x: factors from max(0, 1 - x) to 1 +
  /// x, and shifts of the hue from -x to x.
  static ColorJitter of(double brightness, double contrast = 0, double saturation = 0,
                        double hue = 0) {
    const auto around = [](double reach) { return Range{std::max(0.0, 1 - reach), 1 + reach}; };
    return {around(brightness), around(contrast), around(saturation), {-hue, hue}};
  }
};

/// Sets all three channels to the luma: torchvision's `Grayscale(3)`.
struct Grayscale {};

/// Does what `Grayscale` does, with probability `p`: torchvision's `RandomGrayscale`.
struct RandomGrayscale {
  double p = 0.1;
};

/// Blurs the image: torchvision's `GaussianBlur`. About one level in 100,000 differs from
/// torchvision's by 1, since the order of torchvision's float32 sums depends on its convolution
/// library. If the kernel is wider than the image, torchvision fails; here the image is reflected
/// repeatedly.
struct GaussianBlur {
  /// Width and height of the kernel in pixels, odd, 1 to 1023. Required.
  int kernel_size = 0;
  /// Standard deviation in pixels, 0.001 to 1000.
  Range sigma{0.1, 2.0};
  /// Height of the kernel, if it differs from the width; 0 = the width. In JSON "kernel_size" is
  /// then [width, height].
  int kernel_height = 0;
};

/// Inverts all levels >= `threshold`, with probability `p`: torchvision's `RandomSolarize`.
struct RandomSolarize {
  /// 0 to 256. Required.
  double threshold = -1;
  double p = 0.5;
};

/// Keeps the `bits` highest bits of each level and sets the others to 0, with probability `p`:
/// torchvision's `RandomPosterize`.
struct RandomPosterize {
  /// 0 to 8. Required.
  int bits = -1;
  double p = 0.5;
};

/// Equalizes the histogram of each channel, with probability `p`: torchvision's `RandomEqualize`.
struct RandomEqualize {
  double p = 0.5;
};

/// Stretches each channel to the levels 0 to 255, with probability `p`: torchvision's
/// `RandomAutocontrast`.
struct RandomAutocontrast {
  double p = 0.5;
};

/// Inverts all levels, with probability `p`: torchvision's `RandomInvert`.
struct RandomInvert {
  double p = 0.5;
};

/// Sharpens or smooths the image, with probability `p`: torchvision's `RandomAdjustSharpness`.
struct RandomAdjustSharpness {
  /// 0 gives a smoothed image, 1 the unchanged image, 2 twice the sharpness; 0 to 1,000,000.
  /// Required.
  double sharpness_factor = -1;
  double p = 0.5;
};

}  // namespace millrace
