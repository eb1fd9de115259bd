// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/resample.h>

#include <algorithm>
#include <string>

#include "ops/frame.h"

namespace millrace {

/// What geometric operations make of an image, folded into one region to decode and one resampling:
/// `box` of the image is resized, and the window of that comes to (x, y) of the output. What the
/// window does not cover is zero, or what `frame` says.
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

  /// Why the image cannot be resized now; nullptr if it can.
  const char* why_fixed() const {
    if (!frame.borders.empty()) return "a border would be resampled";
    return resized ? "the image would be resampled twice" : nullptr;
  }

  /// Of the resized image with its borders.
  Size padded() const { return frame.outer(resampling.to); }

  /// Whether the padded image is as large as the output; if it is not, that is the problem.
  bool holds_output(const char* operation, const char* remedy = "") {
    const auto text = [](Size size) {
      return std::to_string(size.width) + " x " + std::to_string(size.height);
    };
    if (padded().width >= output.width && padded().height >= output.height) return true;
    problem = std::string(operation) + " cannot take " + text(output) + " of an image of " +
              text(padded()) + remedy;
    return false;
  }

  /// Makes an output of the padded image from (left, top) on; what it shows beyond that is zero.
  void show(int left, int top) {
    shown = {left, top};
    if (!frame.borders.empty()) {
      frame.show({left, top, output.width, output.height}, resampling.to);
      const Frame::Window window = frame.window();
      resampling.window = window.region;
      x = window.x;
      y = window.y;
      return;
    }
    const int right = std::min(left + output.width, resampling.to.width);
    const int bottom = std::min(top + output.height, resampling.to.height);
    resampling.window = {std::max(left, 0), std::max(top, 0), right - std::max(left, 0),
                         bottom - std::max(top, 0)};
    x = std::max(-left, 0);
    y = std::max(-top, 0);
  }

  /// What the image must be reduced by to be resized from the lowest resolution that still has more
  /// pixels than are made: 8, 4, 2, or 1 for not at all.
  int reduction() const {
    if (resampling.turn != Turn{} || resampling.interpolation == Interpolation::nearest) return 1;
    for (const int by : {8, 4, 2})
      if (box.width >= by * resampling.to.width && box.height >= by * resampling.to.height)
        return by;
    return 1;
  }

  /// Makes the box that of a reduced image, where its edges need not lie between pixels.
  void reduce(int by) {
    const Region whole = box;
    box.x = whole.x / by;
    box.y = whole.y / by;
    box.width = (whole.x + whole.width + by - 1) / by - box.x;
    box.height = (whole.y + whole.height + by - 1) / by - box.y;
    const auto edge = [&](int at, int from) {
      return static_cast<float>(at) / static_cast<float>(by) - static_cast<float>(from);
    };
    resampling.from = {box.width, box.height};
    resampling.box =
        SourceBox{edge(whole.x, box.x), edge(whole.y, box.y), edge(whole.x + whole.width, box.x),
                  edge(whole.y + whole.height, box.y)};
    image = {(image.width + by - 1) / by, (image.height + by - 1) / by};
  }

  /// Exchanges left and right of the output.
  void mirror() {
    resampling.mirrored = !resampling.mirrored;
    x = output.width - resampling.window.width - x;
    std::ranges::reverse(frame.columns);
  }

  /// Exchanges its top and bottom.
  void flip() {
    resampling.flipped = !resampling.flipped;
    y = output.height - resampling.window.height - y;
    std::ranges::reverse(frame.rows);
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
  Frame frame{};
  /// Where the output's left and top edges lie in the padded image, before it is flipped.
  struct Corner {
    int left = 0;
    int top = 0;
  } shown{};
  /// Whether an operation has changed the resampling's size.
  bool resized = false;
  /// Whether an operation has turned the image.
  bool turns = false;
  /// Which of the images that are made of this one (`GeometricOperation::views`).
  int view = 0;
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
