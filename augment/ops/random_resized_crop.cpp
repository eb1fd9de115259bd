// SPDX-License-Identifier: Apache-2.0
#include "ops/operation_of.h"

namespace millrace {
namespace {

constexpr double steepest_ratio = 1000;

class RandomResizedCropOperation final : public OperationOf<RandomResizedCrop, GeometricOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.output("size");
    parameters.range("scale", parameters_.scale, {0, 1}, OneNumber::refused);
    parameters.range("ratio", parameters_.ratio, {1 / steepest_ratio, steepest_ratio},
                     OneNumber::refused);
    describe_interpolation(parameters, parameters_.interpolation);
  }

  bool makes_output() const override { return true; }
  const char* plan(ResamplePlan& plan, Random& random) const override {
    if (const char* reason = plan.why_fixed()) return reason;
    const Region box = random_resized_crop(plan.image, parameters_.scale, parameters_.ratio,
                                           [&random] { return random.uniform(); });
    plan.crop_and_resize(box, parameters_.interpolation);
    return nullptr;
  }
};

}  // namespace

Operation::Operation(const RandomResizedCrop& parameters)
    : implementation_(std::make_shared<RandomResizedCropOperation>(parameters)) {}

}  // namespace millrace
