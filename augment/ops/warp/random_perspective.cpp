// SPDX-License-Identifier: Apache-2.0
#include <millrace/warp_operations.h>

#include "ops/operation_of.h"
#include "ops/warp/warp_parameters.h"

namespace millrace {
namespace {

class RandomPerspectiveOperation final : public OperationOf<RandomPerspective, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.number("distortion_scale", parameters_.distortion_scale, {0, 1});
    parameters.number("p", parameters_.p, {0, 1});
    describe_warp_interpolation(parameters, parameters_.interpolation, Interpolation::bilinear);
    parameters.colour("fill", parameters_.fill);
  }

  ScratchSizes scratch(Size size) const override { return remake_scratch(size); }
  void run(SampleImage& image, Random& random) const override {
    if (random.uniform() >= parameters_.p) return;
    const auto inwards = [&](int side) {
      const int half = side / 2;
      const int reach = static_cast<int>(parameters_.distortion_scale * half);
      return static_cast<double>(random.below(static_cast<std::uint64_t>(reach) + 1));
    };
    const auto [width, height] = image.size;
    // Draws the corners clockwise from the top left, for each corner first x, then y.
    std::array<Point, 4> corners{};
    for (Point& corner : corners) {
      corner.x = inwards(width);
      corner.y = inwards(height);
    }
    for (const std::size_t right : {1U, 2U}) corners[right].x = width - 1 - corners[right].x;
    for (const std::size_t lower : {2U, 3U}) corners[lower].y = height - 1 - corners[lower].y;
    const auto map = perspective_map(image.size, corners);
    if (!map) return;
    remake(image, [&](const std::uint8_t* copy) {
      warp(copy, image.size, *map, parameters_.interpolation, parameters_.fill, image.pixels);
    });
    if (image.spatial_targets != nullptr) image.spatial_targets->warp(*map);
  }
};

}  // namespace

Operation::Operation(const RandomPerspective& parameters)
    : implementation_(std::make_shared<RandomPerspectiveOperation>(parameters)) {}

}  // namespace millrace
