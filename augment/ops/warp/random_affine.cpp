// SPDX-License-Identifier: Apache-2.0
#include <millrace/warp_operations.h>

#include <cmath>

#include "ops/operation_of.h"
#include "ops/warp/warp_parameters.h"

namespace millrace {
namespace {

constexpr NumberList translations{
    .what = "two numbers, [across, down]", .counts = {2}, .limits = {0, 1}};
constexpr NumberList shears{.what = "one number, or two or four, [low, high, low, high]",
                            .counts = {1, 2, 4},
                            .limits = {-89, 89},
                            .ranges = true};
constexpr Range scales{0.001, 1000};

class RandomAffineOperation final : public OperationOf<RandomAffine, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.range("degrees", parameters_.degrees, any_degrees, OneNumber::around_zero);
    const auto [across, down] = parameters_.translate;
    std::vector<double> translate{across, down};
    parameters.numbers("translate", translate, translations);
    if (translate != std::vector{across, down})
      parameters_.translate = {translate[0], translate[1]};
    parameters.range("scale", parameters_.scale, scales, OneNumber::refused);
    describe_shear(parameters);
    describe_warp_interpolation(parameters, parameters_.interpolation, Interpolation::nearest);
    parameters.colour("fill", parameters_.fill);
    parameters.only("center", only_null);
  }

  ScratchSizes scratch(Size size) const override { return remake_scratch(size); }
  void run(SampleImage& image, Random& random) const override {
    const auto drawn = [&](Range range) { return random.uniform(range.low, range.high); };
    const double degrees = drawn(parameters_.degrees);
    const auto [across, down] = parameters_.translate;
    const auto move = [&](double share, int side) {
      const double longest = share * side;
      return std::nearbyint(drawn({-longest, longest}));
    };
    const double move_x = move(across, image.size.width);
    const double move_y = move(down, image.size.height);
    const double scale = drawn(parameters_.scale);
    const double shear_x = drawn(parameters_.shear_x);
    const double shear_y = drawn(parameters_.shear_y);
    const AffineMap map =
        affine_map(middle(image.size), degrees, {move_x, move_y}, scale, {shear_x, shear_y});
    remake(image, [&](const std::uint8_t* copy) {
      warp(copy, image.size, map, parameters_.interpolation, parameters_.fill, image.pixels);
    });
    if (image.spatial_targets != nullptr) image.spatial_targets->warp(map);
  }

 private:
  void describe_shear(Parameters& parameters) {
    const Range x = parameters_.shear_x;
    const Range y = parameters_.shear_y;
    std::vector<double> shear{x.low, x.high};
    if (y != Range{0, 0}) shear.insert(shear.end(), {y.low, y.high});
    const std::vector<double> before = shear;
    parameters.numbers("shear", shear, shears);
    if (shear == before) return;
    if (shear.size() == 1) shear = {-std::abs(shear[0]), std::abs(shear[0])};
    shear.resize(4, 0);
    parameters_.shear_x = {shear[0], shear[1]};
    parameters_.shear_y = {shear[2], shear[3]};
  }
};

}  // namespace

Operation::Operation(const RandomAffine& parameters)
    : implementation_(std::make_shared<RandomAffineOperation>(parameters)) {}

}  // namespace millrace
