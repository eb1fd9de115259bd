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

/// The part of an image that a sample shows. For a sample of several images it is that of the first
/// one. For a sample with borders it is the part inside the borders, or the part that they mirror.
/// Operations on the sample's pixels may turn that part or cover some of it; this does not include
/// their effects.
struct SampleGeometry {
  /// Size of the upright image if the recipe turns it, otherwise of the image as stored.
  Size image;
  /// Edges in that image, in pixels from its top left corner. They need not lie between pixels.
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
  /// Whether the sample shows the part with left and right exchanged. Flips on the device do not
  /// count.
  bool mirrored = false;
  /// Whether the sample shows it with top and bottom exchanged.
  bool flipped = false;
};

/// Returns the part of an image that a recipe's sample shows. The image is stored in the size
/// `stored` with an EXIF orientation (1 if its file states none). Draws from `random`, the sample's
/// own, as its worker does. Throws `Error`: `invalid_argument` for a recipe that `validate`
/// refuses, `bad_record` for an image that the recipe cannot be run on.
SampleGeometry sample_geometry(const Recipe& recipe, Size stored, int orientation, Random& random);

}  // namespace millrace
