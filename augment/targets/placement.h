// SPDX-License-Identifier: Apache-2.0
//
// Where a fold takes what lies on an image. Pure functions: any thread may call them.
#pragma once

#include <millrace/geometry.h>

#include <span>
#include <vector>

#include "ops/fold.h"
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

/// Which column and row of the image as it is stored each column and row of the output shows, of
/// what torch calls "nearest"; below 0 where it shows none. `transposed`: they are rows and
/// columns. Source: nearest_neighbor_compute_source_index in PyTorch's UpSample.h.
struct NearestPlaces {
  std::vector<int> columns{};
  std::vector<int> rows{};
  bool transposed = false;

  void find(const Fold& fold);
};

/// Moves boxes of the stored image to the output, clipped to what it shows, step by step in float32
/// as torchvision's crop_, resize_, pad_ and horizontal_flip_bounding_boxes do. What lies beyond
/// the image is clipped first.
void place_boxes(const Fold& fold, std::span<Box> boxes);
/// The same of points, which are not clipped. A turn or a flip exchanges the middles of pixels.
FloatPoint placed(const Fold& fold, FloatPoint point);

/// Where a warp takes a point of the image; the map of a warp tells where pixels come from.
/// Source: `_affine_bounding_boxes_with_expand` and `perspective_bounding_boxes` in torchvision's
/// transforms/v2/functional/_geometry.py.
class ForwardWarp {
 public:
  explicit ForwardWarp(const AffineMap& map);
  explicit ForwardWarp(const PerspectiveMap& map);

  FloatPoint operator()(FloatPoint point) const;
  /// The box around a box's corners, clipped to an image of that size.
  Box operator()(const Box& box, Size size) const;

 private:
  /// Rows of a matrix of homogeneous coordinates, up to a factor.
  double rows_[3][3];
};

/// The map of a rotation, counter-clockwise around the image's middle.
AffineMap rotation_map(Size size, double degrees);

}  // namespace millrace
