// SPDX-License-Identifier: Apache-2.0
//
// Operations on the colours of a sample's image: their parameters, in torchvision's names. These
// are values: they may be copied, and read from any thread.
//
// They make the pixels that torchvision makes of PIL images, to the bit (`GaussianBlur` says where
// it does not). Each draws its parameters for every sample, with equal probability from a range.
#pragma once

#include <millrace/operation.h>

#include <algorithm>

namespace MILLRACE_API millrace {

/// Brightness, contrast, saturation and hue changed, in random order: torchvision's `ColorJitter`.
struct ColorJitter {
  /// Factors from 0 to 1,000,000. A property with the range [1, 1] stays as it is.
  Range brightness{1, 1};
  Range contrast{1, 1};
  Range saturation{1, 1};
  /// Shares of the circle of hues, -0.5 to 0.5; [0, 0] leaves the hue as it is.
  Range hue{0, 0};

  /// With torchvision's single numbers: factors from max(0, 1 - x) to 1 + x, and shares of the
  /// circle from -x to x.
  static ColorJitter of(double brightness, double contrast = 0, double saturation = 0,
                        double hue = 0) {
    const auto around = [](double reach) { return Range{std::max(0.0, 1 - reach), 1 + reach}; };
    return {around(brightness), around(contrast), around(saturation), {-hue, hue}};
  }
};

/// The luma in all three channels: torchvision's `Grayscale(3)`.
struct Grayscale {};

/// The same with probability `p`: torchvision's `RandomGrayscale`.
struct RandomGrayscale {
  double p = 0.1;
};

/// torchvision's `GaussianBlur`. A level that torchvision finds to lie next to a half may be
/// rounded to the other side, as the order of its sums in float32 is that of its library of
/// convolutions: about one of 100,000 differs by 1. A kernel that is wider than the image, where
/// torchvision fails, reflects it again.
struct GaussianBlur {
  /// Width and height in pixels, odd, 1 to 1023. It must be given.
  int kernel_size = 0;
  /// Standard deviation in pixels, 0.001 to 1000.
  Range sigma{0.1, 2.0};
  /// The height, if it is not the width; 0 = it is. In JSON "kernel_size" is [width, height] then.
  int kernel_height = 0;
};

/// Levels from `threshold` on inverted, with probability `p`: torchvision's `RandomSolarize`.
struct RandomSolarize {
  /// 0 to 256. It must be given.
  double threshold = -1;
  double p = 0.5;
};

/// The highest bits of each level kept, with probability `p`: torchvision's `RandomPosterize`.
struct RandomPosterize {
  /// 0 to 8. It must be given.
  int bits = -1;
  double p = 0.5;
};

/// The levels of each channel spread so that all are about as frequent, with probability `p`:
/// torchvision's `RandomEqualize`.
struct RandomEqualize {
  double p = 0.5;
};

/// Each channel stretched to the levels 0 to 255, with probability `p`: torchvision's
/// `RandomAutocontrast`.
struct RandomAutocontrast {
  double p = 0.5;
};

/// All levels inverted, with probability `p`: torchvision's `RandomInvert`.
struct RandomInvert {
  double p = 0.5;
};

/// The image sharpened, or smoothed, with probability `p`: torchvision's `RandomAdjustSharpness`.
struct RandomAdjustSharpness {
  /// 0 is smoothed, 1 is the image, 2 is twice as sharp; 0 to 1,000,000. It must be given.
  double sharpness_factor = -1;
  double p = 0.5;
};

}  // namespace millrace
