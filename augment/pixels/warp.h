// SPDX-License-Identifier: Apache-2.0
//
// Pillow's `Image.transform` and `Image.rotate` of 8-bit RGB images of one size, to the bit, and
// the matrices that torchvision and Pillow make for them. An image is its rows without gaps. The
// result must not overlap the image. Pure functions: any thread may call them.
#pragma once

#include <millrace/operation.h>

#include <array>
#include <cstdint>
#include <optional>

namespace millrace {

struct Point {
  double x = 0;
  double y = 0;
};

/// Maps a pixel of the result to its place in the source. The pixel with its centre at (x, y) comes
/// from (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]).
using AffineMap = std::array<double, 6>;

/// Does the same, with both coordinates divided by m[6] x + m[7] y + 1.
using PerspectiveMap = std::array<double, 8>;

/// Returns the map that rotates clockwise by `degrees`, scales by `scale` and shears by the degrees
/// `shear` along both axes. These three changes are around `centre`. Then the map moves by
/// `translation`. Source: `_get_inverse_affine_matrix` in torchvision's transforms/functional.py.
/// Its `functional.affine` takes the image's `middle` for the centre.
AffineMap affine_map(Point centre, double degrees, Point translation, double scale, Point shear);
inline Point middle(Size size) { return {size.width * 0.5, size.height * 0.5}; }

/// Returns the map that moves the four corner pixels of an image, clockwise from the top left, to
/// `corners`, which are whole numbers. nullopt if three of the corners lie on one line: such a map
/// does not exist. Source: `_get_perspective_coeffs` in torchvision's transforms/functional.py.
/// Since 0.18 it solves the equations in double precision and rounds to float32, as is done here.
/// Older versions solved them in float32, which leaves three or four correct digits.
std::optional<PerspectiveMap> perspective_map(Size size, const std::array<Point, 4>& corners);

/// Makes the warped image. Pixels from outside the image have the colour `fill`. `interpolation` is
/// `nearest`, `bilinear` or `bicubic`, which are not antialiased here. Source:
/// ImagingTransformAffine and ImagingGenericTransform in Pillow's Geometry.c.
void warp(const std::uint8_t* image, Size size, const AffineMap& map, Interpolation interpolation,
          Colour fill, std::uint8_t* made);
void warp(const std::uint8_t* image, Size size, const PerspectiveMap& map,
          Interpolation interpolation, Colour fill, std::uint8_t* made);

/// Rotates counter-clockwise by `degrees` around the middle. Quarter turns are exact where the size
/// allows. Source: `Image.rotate` in Pillow's Image.py.
void rotate(const std::uint8_t* image, Size size, double degrees, Interpolation interpolation,
            Colour fill, std::uint8_t* made);

}  // namespace millrace
