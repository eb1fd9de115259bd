// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/resample.h>

#include <string>

namespace millrace {

/// What geometric operations make of an image, folded into one region to decode and one resampling:
/// `box` of the image is resized, and the window of that comes to (x, y) of the output. What the
/// window does not cover is zero.
struct Fold {
  Fold(Size stored, int exif_orientation, Size made, Like like)
      : orientation(exif_orientation), output(made) {
    resampling.like = like;
    take(stored);
  }

  /// Turns the image upright, before anything else.
  void turn() {
    turns = true;
    resampling.turn = turn_of(orientation);
    take(turned(image, resampling.turn));
  }

  /// Where the box lies in the image as it is stored.
  Region stored_box() const { return stored_region(box, image, resampling.turn); }

  /// Resizes a region of the image, and nothing else of it, to the output.
  void crop_and_resize(const Region& region, Interpolation interpolation) {
    box = region;
    resampling.from = {region.width, region.height};
    resampling.to = output;
    resampling.window = {0, 0, output.width, output.height};
    resampling.interpolation = interpolation;
    resized = true;
  }

  /// Exchanges left and right of the output.
  void mirror() {
    resampling.mirrored = !resampling.mirrored;
    x = output.width - resampling.window.width - x;
  }

  /// As the file says; 1 where nobody asks for it.
  int orientation;
  Size output;
  /// The image's size, upright if it was turned.
  Size image;
  Region box;
  Resampling resampling{};
  int x = 0;
  int y = 0;
  /// Whether an operation has changed the resampling's size.
  bool resized = false;
  /// Whether an operation has turned the image.
  bool turns = false;
  /// Why this image cannot be made so; empty if it can.
  std::string problem{};

 private:
  void take(Size size) {
    image = size;
    box = {0, 0, size.width, size.height};
    resampling.from = size;
    resampling.to = size;
    resampling.window = box;
  }
};

}  // namespace millrace
