// SPDX-License-Identifier: Apache-2.0
#include <millrace/warp_operations.h>

#include "ops/operation_of.h"
#include "ops/warp/warp_parameters.h"

namespace millrace {
namespace {

class RandomRotationOperation final : public OperationOf<RandomRotation, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.range("degrees", parameters_.degrees, any_degrees, OneNumber::around_zero);
    describe_warp_interpolation(parameters, parameters_.interpolation, Interpolation::nearest);
    parameters.only("expand", only_false);
    parameters.only("center", only_null);
    parameters.colour("fill", parameters_.fill);
  }

  ScratchSizes scratch(Size size) const override { return remake_scratch(size); }
  void run(SampleImage& image, Random& random) const override {
    const double degrees = random.uniform(parameters_.degrees.low, parameters_.degrees.high);
    remake(image, [&](const std::uint8_t* copy) {
      rotate(copy, image.size, degrees, parameters_.interpolation, parameters_.fill, image.pixels);
    });
    if (image.spatial_targets != nullptr) image.spatial_targets->rotate(degrees);
  }
};

}  // namespace

Operation::Operation(const RandomRotation& parameters)
    : implementation_(std::make_shared<RandomRotationOperation>(parameters)) {}

}  // namespace millrace
