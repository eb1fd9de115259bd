// SPDX-License-Identifier: Apache-2.0
//
// Operations that move the pixels of a sample's image, which stays as large as it is, or cover some
// of them: their parameters, in torchvision's names. These are values: they may be copied, and read
// from any thread.
//
// They make the pixels that torchvision makes of PIL images, to the bit. `interpolation` is
// `nearest`, `bilinear` or `bicubic`, none of them antialiased here, and what comes from outside
// has the colour `fill`. A range of degrees may be written as one number in JSON: 15 is [-15, 15].
#pragma once

#include <millrace/operation.h>

#include <array>

namespace MILLRACE_API millrace {

/// The image turned, moved, scaled and sheared around its middle: torchvision's `RandomAffine`.
/// Each parameter is drawn with equal probability from its range.
struct RandomAffine {
  /// Clockwise, -360 to 360.
  Range degrees{0, 0};
  /// The longest move to either side, as a share of the width, and up or down, of the height; both
  /// in 0 to 1. What is drawn is rounded to whole pixels.
  std::array<double, 2> translate{0, 0};
  /// Factor for width and height, 0.001 to 1000.
  Range scale{1, 1};
  /// Degrees along x and along y, -89 to 89. In JSON "shear" is one number, two or four.
  Range shear_x{0, 0};
  Range shear_y{0, 0};
  Interpolation interpolation = Interpolation::nearest;
  Colour fill{};
};

/// The image turned around its middle: torchvision's `RandomRotation` without `expand`.
struct RandomRotation {
  /// Counter-clockwise, -360 to 360.
  Range degrees{0, 0};
  Interpolation interpolation = Interpolation::nearest;
  Colour fill{};
};

/// The image seen askew with probability `p`: torchvision's `RandomPerspective`. Each corner is
/// moved inwards by up to `distortion_scale` / 2 of the sides, to a whole pixel. If three of them
/// come to lie on one line, where torchvision fails, the image stays as it is. The map has the bits
/// of torchvision since 0.18, but for numbers in it that would be 0 were it not for roundings.
struct RandomPerspective {
  double distortion_scale = 0.5;
  double p = 0.5;
  Interpolation interpolation = Interpolation::bilinear;
  Colour fill{};
};

/// Where boxes are erased.
enum class EraseOn {
  worker,  ///< by the worker that makes the sample
  device,  ///< by the device, before it converts, which needs `PipelineOptions::conversion`; the
           ///< result has the same bits
};

/// A random box of the image covered with probability `p`: torchvision's `RandomErasing`, but on
/// the 8-bit pixels, so `value` is a colour.
struct RandomErasing {
  double p = 0.5;
  /// Share of the image's area.
  Range scale{0.02, 0.33};
  /// Height / width.
  Range ratio{0.3, 3.3};
  Colour value{};
  /// On the device it is a recipe's last operation.
  EraseOn on = EraseOn::worker;
};

}  // namespace millrace
