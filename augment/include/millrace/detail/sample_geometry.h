// SPDX-License-Identifier: Apache-2.0
//
// The part of an image that a sample shows.
//
// Thread-safe: a function of values.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/geometry.h>
#include <millrace/random.h>
#include <millrace/recipe.h>

namespace MILLRACE_API millrace {

/// The part of an image that a sample shows. If the sample has several images, the part is that of
/// the first one. If the sample has borders, the part is the smallest that contains every pixel of
/// the image that the sample shows, directly or in a border. The effects of warps and erasing,
/// which may turn this part or cover some of it, are not included.
struct SampleGeometry {
  /// Size of the upright image if the recipe turns the image, otherwise of the image as stored.
  Size image;
  /// Edges of the part, in pixels from the top left corner of the image. They may lie within a
  /// pixel.
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
  /// Whether the sample shows the part with left and right exchanged. Flips on the device do not
  /// count.
  bool mirrored = false;
  /// Whether the sample shows the part with top and bottom exchanged.
  bool flipped = false;
};

/// Returns the part of an image that a recipe's sample shows. `stored` is the size of the image as
/// stored, and `orientation` its EXIF orientation (1 if the file states none). `random` must be the
/// sample's `Random`; the function draws from it as a worker does. Throws `Error`:
/// `invalid_argument` for a recipe that `validate` refuses, `bad_record` for an image that the
/// recipe cannot be run on.
SampleGeometry sample_geometry(const Recipe& recipe, Size stored, int orientation, Random& random);

}  // namespace millrace
