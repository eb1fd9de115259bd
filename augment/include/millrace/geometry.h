// SPDX-License-Identifier: Apache-2.0
//
// Pure functions on values: they may be called from any thread.
#pragma once

#include <millrace/image.h>

#include <functional>

namespace millrace {

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

/// Tells where a centred window of `crop` lies in `image`, as torchvision's `CenterCrop` places it.
/// x or y is negative where the image is smaller than the window and is padded.
Region center_crop(Size image, Size crop);

}  // namespace millrace
