// SPDX-License-Identifier: Apache-2.0
//
// Parameters, in torchvision's names, of operations that move or cover pixels of a sample's image.
// The image keeps its size. The structs are values: they may be copied, and read from any thread.
//
// The pixels equal those that torchvision makes from PIL images, to the bit. `interpolation` is
// `nearest`, `bilinear` or `bicubic`, without antialiasing. Pixels from outside the image have the
// colour `fill`. JSON may give a range of degrees as one number: 15 is [-15, 15].
#pragma once

#include <millrace/operation.h>

#include <array>

namespace MILLRACE_API millrace {

/// Rotates, moves, scales and shears the image around its centre: torchvision's `RandomAffine`.
/// Each parameter is drawn uniformly from its range.
struct RandomAffine {
  /// Angle of the rotation, clockwise, -360 to 360.
  Range degrees{0, 0};
  /// Largest shift to the left or right, as a share of the width, and largest shift up or down, as
  /// a share of the height. Both are 0 to 1. The drawn shift is rounded to whole pixels.
  std::array<double, 2> translate{0, 0};
  /// Factor of both width and height, 0.001 to 1000.
  Range scale{1, 1};
  /// Shear angles along x and along y in degrees, -89 to 89. In JSON "shear" is one, two or four
  /// numbers.
  Range shear_x{0, 0};
  Range shear_y{0, 0};
  Interpolation interpolation = Interpolation::nearest;
  Colour fill{};
};

/// Rotates the image around its centre: torchvision's `RandomRotation` without `expand`.
struct RandomRotation {
  /// Angle of the rotation, counter-clockwise, -360 to 360.
  Range degrees{0, 0};
  Interpolation interpolation = Interpolation::nearest;
  Colour fill{};
};

/// Distorts the perspective with probability `p`: torchvision's `RandomPerspective`. Each corner
/// moves inwards by up to `distortion_scale` / 2 of the sides, to a whole pixel. If three corners
/// then lie on one line, torchvision fails; here the image stays unchanged. The coefficients of the
/// map equal those of torchvision 0.18 and later to the bit. Exceptions are coefficients that would
/// be 0 without rounding errors; then a pixel may differ by a level.
struct RandomPerspective {
  double distortion_scale = 0.5;
  double p = 0.5;
  Interpolation interpolation = Interpolation::bilinear;
  Colour fill{};
};

/// The place where boxes are erased.
enum class EraseOn {
  worker,  ///< by the worker that makes the sample
  device,  ///< by the device, before it converts; needs `PipelineOptions::conversion`; the result
           ///< has the same bits
};

/// Covers a random box of the image with probability `p`: torchvision's `RandomErasing`. It works
/// on 8-bit pixels, so `value` is a colour.
struct RandomErasing {
  double p = 0.5;
  /// Area of the box, as a share of the image's area.
  Range scale{0.02, 0.33};
  /// Height / width of the box.
  Range ratio{0.3, 3.3};
  Colour value{};
  /// An erasure on the device must be a recipe's last operation.
  EraseOn on = EraseOn::worker;
};

}  // namespace millrace
