// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/resample.h>

namespace millrace {

/// What geometric operations make of an image, folded into one region to decode and one resampling:
/// `box` of the image is resized, and the window of that comes to (x, y) of the output. What the
/// window does not cover is zero.
struct Fold {
  Fold(Size image, Size made, Like like)
      : output(made),
        box{0, 0, image.width, image.height},
        resampling{
            .from = image, .to = image, .window = {0, 0, image.width, image.height}, .like = like} {
  }

  /// Exchanges left and right of the output.
  void mirror() {
    resampling.mirrored = !resampling.mirrored;
    x = output.width - resampling.window.width - x;
  }

  Size output;
  Region box;
  Resampling resampling;
  int x = 0;
  int y = 0;
  /// Whether an operation has changed the resampling's size.
  bool resized = false;
};

}  // namespace millrace
