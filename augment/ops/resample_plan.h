// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/resample.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "ops/padding_map.h"

namespace millrace {

/// Geometric operations on an image, folded into one region to decode and one resampling. The `box`
/// of the image is resized, and the window of the result is placed at (x, y) of the output. Output
/// that the window does not cover is zero, or as `padding_map` says.
struct ResamplePlan {
  ResamplePlan(Size stored, int exif_orientation, Size made, Like like)
      : orientation(exif_orientation), output(made) {
    resampling.like = like;
    take(stored);
  }

  /// Turns the image upright, before any other operation.
  void turn() {
    turns = true;
    resampling.turn = turn_of(orientation);
    take(turned(image, resampling.turn));
  }

  /// Returns the box's place in the image as stored.
  Region stored_box() const { return stored_region(box, image, resampling.turn); }

  /// Resizes only a region of the image, to the output.
  void crop_and_resize(const Region& region, Interpolation interpolation) {
    box = region;
    resampling.from = {region.width, region.height};
    resampling.to = output;
    resampling.window = {0, 0, output.width, output.height};
    resampling.interpolation = interpolation;
    resized = true;
  }

  /// Returns the reason why the image cannot be resized now, or nullptr.
  const char* why_fixed() const {
    if (!padding_map.borders.empty()) return "a border would be resampled";
    return resized ? "the image would be resampled twice" : nullptr;
  }

  /// Returns the size of the resized image with its borders.
  Size padded() const { return padding_map.outer(resampling.to); }

  /// Returns whether the padded image is at least as large as the output. Sets `problem` if it is
  /// not.
  bool holds_output(const char* operation, const char* remedy = "") {
    const auto text = [](Size size) {
      return std::to_string(size.width) + " x " + std::to_string(size.height);
    };
    if (padded().width >= output.width && padded().height >= output.height) return true;
    problem = std::string(operation) + " cannot take " + text(output) + " of an image of " +
              text(padded()) + remedy;
    return false;
  }

  /// Makes the output from the padded image, with its corner at (left, top). Output beyond the
  /// padded image is zero.
  void show(int left, int top) {
    shown = {left, top};
    if (!padding_map.borders.empty()) {
      padding_map.show({left, top, output.width, output.height}, resampling.to);
      const PaddingMap::Window window = padding_map.window();
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

  /// Returns the plan for another image, which has the stored size `stored`. It shows the same
  /// part, in fractions of width and height, in the same pixels of the output.
  ResamplePlan for_image(Size stored, int exif_orientation) const {
    ResamplePlan plan = *this;
    plan.orientation = exif_orientation;
    if (turns) plan.resampling.turn = turn_of(exif_orientation);
    plan.image = turned(stored, plan.resampling.turn);
    if (plan.image == image) return plan;
    // An edge of the box, in pixels of the other image.
    struct Edge {
      std::int64_t product;
      int divisor;
      int below() const { return static_cast<int>(product / divisor); }
      int above() const { return static_cast<int>((product + divisor - 1) / divisor); }
      float from(int pixel) const {
        return static_cast<float>(static_cast<double>(product) / divisor - pixel);
      }
    };
    const Edge left{std::int64_t{box.x} * plan.image.width, image.width};
    const Edge top{std::int64_t{box.y} * plan.image.height, image.height};
    const Edge right{std::int64_t{box.x + box.width} * plan.image.width, image.width};
    const Edge bottom{std::int64_t{box.y + box.height} * plan.image.height, image.height};
    plan.box = {left.below(), top.below(), right.above() - left.below(),
                bottom.above() - top.below()};
    plan.resampling.from = {plan.box.width, plan.box.height};
    plan.resampling.box = SourceBox{left.from(plan.box.x), top.from(plan.box.y),
                                    right.from(plan.box.x), bottom.from(plan.box.y)};
    return plan;
  }

  /// Returns the largest reduction, 8, 4 or 2, at which the box is at least as large as the size
  /// that it is resized to. Returns 1 if no reduction is possible.
  int reduction() const {
    if (resampling.turn != Turn{} || resampling.interpolation == Interpolation::nearest) return 1;
    for (const int by : {8, 4, 2})
      if (box.width >= by * resampling.to.width && box.height >= by * resampling.to.height)
        return by;
    return 1;
  }

  /// Adapts the box to the image at 1/`by` of its resolution. Its edges may then lie inside pixels.
  void reduce(int by) {
    const Region whole = box;
    const auto part = resampling.box;
    box.x = whole.x / by;
    box.y = whole.y / by;
    box.width = (whole.x + whole.width + by - 1) / by - box.x;
    box.height = (whole.y + whole.height + by - 1) / by - box.y;
    // A float does not hold all columns of an image wider than 2^24.
    const auto edge = [by](int begin, double at, int from) {
      return static_cast<float>((begin + at) / by - from);
    };
    resampling.from = {box.width, box.height};
    resampling.box = SourceBox{edge(whole.x, part ? double{part->left} : 0, box.x),
                               edge(whole.y, part ? double{part->top} : 0, box.y),
                               edge(whole.x, part ? double{part->right} : whole.width, box.x),
                               edge(whole.y, part ? double{part->bottom} : whole.height, box.y)};
    image = {(image.width + by - 1) / by, (image.height + by - 1) / by};
  }

  /// Exchanges left and right of the output.
  void mirror() {
    resampling.mirrored = !resampling.mirrored;
    x = output.width - resampling.window.width - x;
    std::ranges::reverse(padding_map.columns);
  }

  /// Exchanges top and bottom of the output.
  void flip() {
    resampling.flipped = !resampling.flipped;
    y = output.height - resampling.window.height - y;
    std::ranges::reverse(padding_map.rows);
  }

  /// The file's EXIF orientation; 1 where no operation needs it.
  int orientation;
  Size output;
  /// The image's size, upright if it was turned.
  Size image;
  Region box;
  Resampling resampling{};
  int x = 0;
  int y = 0;
  PaddingMap padding_map{};
  /// The output's left and top edges in the padded image, before a flip.
  struct Corner {
    int left = 0;
    int top = 0;
  } shown{};
  /// Whether an operation has changed the resampling's size.
  bool resized = false;
  /// Whether an operation has turned the image.
  bool turns = false;
  /// The image's number among the sample's images (`GeometricOperation::views`).
  int view = 0;
  /// The reason why the operations cannot run on this image; empty if they can.
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
