// SPDX-License-Identifier: Apache-2.0
//
// Geometry of crops, resizes and turns. The functions are pure: any thread may call them.
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

/// Returns a random box, as torchvision's `RandomResizedCrop.get_params` does. It tries up to ten
/// boxes. Their area is uniform in `scale` (share of the image's area). The logarithm of their
/// aspect ratio (width / height) is uniform between the logarithms of `ratio`. If no box fits, it
/// takes the largest centred box within the ratios. `draw` must return numbers uniform in [0, 1).
/// The function calls it in torchvision's order: area and ratio for each attempt, then top and left
/// of the box that fits. The box is inside the image and not empty. Source:
/// torchvision/transforms/transforms.py.
Region random_resized_crop(Size image, Range scale, Range ratio,
                           const std::function<double()>& draw);

/// Returns the size of `image` with its shorter side resized to `shorter`. The longer side is
/// rounded down, as by torchvision's `Resize(int)`.
Size resize_shorter(Size image, int shorter);
/// Does the same, unless the longer side would exceed `max_size`. Then the longer side becomes
/// `max_size`, and the shorter side gets smaller in proportion, rounded down.
Size resize_shorter(Size image, int shorter, int max_size);

/// Returns the centred window of size `crop` in `image`, as torchvision's `CenterCrop` does. x or y
/// is negative if the image is smaller than the window; the caller then pads the image.
Region center_crop(Size image, Size crop);

/// Returns one of the five windows of torchvision's `FiveCrop` in `image`. `number` 0 to 3 means
/// the corners (top left, top right, bottom left, bottom right), 4 the centre. `crop` must not be
/// larger than the image.
Region crop_of_five(Size image, Size crop, int number);

/// The steps that make a stored image upright, in this order: exchange rows and columns, exchange
/// left and right, exchange top and bottom.
struct Turn {
  bool transposed = false;
  bool mirrored = false;
  bool flipped = false;
  friend bool operator==(const Turn&, const Turn&) = default;
};

/// Returns the turn for an EXIF orientation (Exif 2.32, 4.6.4, tag 0x0112), as in Pillow's
/// `ImageOps.exif_transpose`. Numbers outside 1 to 8 give no turn.
Turn turn_of(int orientation);

/// Returns the size of an image after the turn. Given the upright size, it returns the stored size.
Size turned(Size image, Turn turn);

/// Converts a region of the upright image, whose size is `upright`, to a region of the stored
/// image.
Region stored_region(const Region& region, Size upright, Turn turn);

}  // namespace millrace
