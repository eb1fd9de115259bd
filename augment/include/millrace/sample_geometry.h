// SPDX-License-Identifier: Apache-2.0
//
// A function of values: it may be called from any thread.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/geometry.h>
#include <millrace/random.h>
#include <millrace/recipe.h>

namespace MILLRACE_API millrace {

/// Which part of an image a sample shows, of several images its first one. Where the sample has
/// borders, it is the part that these leave or mirror. Operations on the sample's pixels, which may
/// turn it or cover some of it, are not told of.
struct SampleGeometry {
  /// The upright image, for a recipe that turns it, else the image as it is stored.
  Size image;
  /// Edges in that, in pixels from its top left corner. They need not lie between pixels.
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
  /// Whether the sample shows it with left and right exchanged; of flips on the device it does not.
  bool mirrored = false;
  /// Whether with top and bottom exchanged.
  bool flipped = false;
};

/// Tells what a recipe's sample shows of an image that is stored in the size `stored` with an EXIF
/// orientation (1 where the file says none). Draws from `random`, the sample's own, as its worker
/// does. Throws `Error`: `invalid_argument` for a recipe that `validate` refuses, `bad_record` for
/// an image that the recipe cannot be run on.
SampleGeometry sample_geometry(const Recipe& recipe, Size stored, int orientation, Random& random);

}  // namespace millrace
