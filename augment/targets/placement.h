// SPDX-License-Identifier: Apache-2.0
//
// The places in the output of points and boxes on the image. Pure functions: any thread may call
// them.
#pragma once

#include <millrace/geometry.h>

#include <span>
#include <vector>

#include "ops/resample_plan.h"
#include "pixels/warp.h"

namespace millrace {

/// A box's edges.
struct Box {
  float left;
  float top;
  float right;
  float bottom;
};

struct FloatPoint {
  float x;
  float y;
};

/// The column and the row of the stored image that each column and row of the output shows. The
/// rule is torch's "nearest". It is below 0 for a column or row that shows no pixel of the image.
/// If `transposed` is set, `columns` has rows of the stored image and `rows` has columns. Source:
/// nearest_neighbor_compute_source_index in PyTorch's UpSample.h.
struct NearestSources {
  std::vector<int> columns{};
  std::vector<int> rows{};
  bool transposed = false;

  void find(const ResamplePlan& plan);
};

/// Moves boxes of the stored image to the output, clipped to the part that it shows. The steps are
/// in float, as in torchvision's crop_, resize_, pad_ and horizontal_flip_bounding_boxes. Boxes are
/// clipped to the image first.
void place_boxes(const ResamplePlan& plan, std::span<Box> boxes);
/// Does the same for a point, without clipping. A turn or a flip exchanges the centres of pixels.
FloatPoint placed(const ResamplePlan& plan, FloatPoint point);

/// The inverse of a warp's map: it returns the place to which a point of the image moves. (A warp's
/// map itself returns the place from which a pixel comes.) Source:
/// `_affine_bounding_boxes_with_expand` and `perspective_bounding_boxes` in torchvision's
/// transforms/v2/functional/_geometry.py.
class ForwardWarp {
 public:
  explicit ForwardWarp(const AffineMap& map);
  explicit ForwardWarp(const PerspectiveMap& map);

  FloatPoint operator()(FloatPoint point) const;
  /// Returns the upright box around the moved corners of a box, clipped to an image of `size`.
  Box operator()(const Box& box, Size size) const;

 private:
  /// Rows of a matrix of homogeneous coordinates, up to a factor.
  double rows_[3][3];
};

/// Returns the map of a rotation, counter-clockwise around the image's centre.
AffineMap rotation_map(Size size, double degrees);

}  // namespace millrace
