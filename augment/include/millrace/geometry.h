// SPDX-License-Identifier: Apache-2.0
//
// Pure functions on values: they may be called from any thread.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/image.h>

#include <functional>

namespace MILLRACE_API millrace {

/// The numbers from `low` to `high`, both included.
struct Range {
  double low = 0;
  double high = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

/// Draws a box as torchvision's `RandomResizedCrop.get_params` does: it tries up to ten boxes whose
/// area is uniform in `scale` (share of the image's) and whose logarithm of aspect ratio (width /
/// height) is uniform in `ratio`'s, and then takes the largest centred one within the ratios.
/// `draw` gives numbers uniform in [0, 1), consumed in torchvision's order: area and ratio per
/// attempt, then top and left of the one that fits. The box is inside the image and not empty.
/// Source: torchvision/transforms/transforms.py.
Region random_resized_crop(Size image, Range scale, Range ratio,
                           const std::function<double()>& draw);

/// Tells the size of `image` when its shorter side is resized to `shorter`, as torchvision's
/// `Resize(int)` rounds it (down).
Size resize_shorter(Size image, int shorter);
/// The same if the longer side is at most `max_size` then, else the size whose longer side it is.
Size resize_shorter(Size image, int shorter, int max_size);

/// Tells where a centred window of `crop` lies in `image`, as torchvision's `CenterCrop` places it.
/// x or y is negative where the image is smaller than the window and is padded.
Region center_crop(Size image, Size crop);

/// Tells where windows of `crop`, which is no larger, lie in `image`: 0 to 3 in its corners (top
/// left, top right, bottom left, bottom right), 4 in its centre, as torchvision's `FiveCrop` has
/// them.
Region crop_of_five(Size image, Size crop, int number);

/// What makes an image upright that is stored otherwise: rows and columns are exchanged, then left
/// and right, then top and bottom; each if it is so said.
struct Turn {
  bool transposed = false;
  bool mirrored = false;
  bool flipped = false;
  friend bool operator==(const Turn&, const Turn&) = default;
};

/// Tells the turn for an EXIF orientation (Exif 2.32, 4.6.4, tag 0x0112), as Pillow's
/// `ImageOps.exif_transpose` does it; none for numbers that are not in 1 to 8.
Turn turn_of(int orientation);

/// Tells the size of an image after the turn; the turn back takes it to its size as stored.
Size turned(Size image, Turn turn);

/// Tells where a region of the upright image, which has the size `upright`, lies in the image as it
/// is stored.
Region stored_region(const Region& region, Size upright, Turn turn);

}  // namespace millrace
