// SPDX-License-Identifier: Apache-2.0
#include "ops/operation_of.h"

namespace millrace {
namespace {

class ResizedCropOperation final : public OperationOf<ResizedCrop, GeometricOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.region("box", parameters_.box);
    describe_interpolation(parameters, parameters_.interpolation);
  }

  bool is_random() const override { return false; }
  bool makes_output() const override { return true; }
  const char* plan(ResamplePlan& plan, Random&) const override {
    if (const char* reason = plan.why_fixed()) return reason;
    plan.crop_and_resize(parameters_.box, parameters_.interpolation);
    const Region& box = parameters_.box;
    if (box.x > plan.image.width - box.width || box.y > plan.image.height - box.height)
      plan.problem = "resized_crop's box " + std::to_string(box.width) + " x " +
                     std::to_string(box.height) + " at (" + std::to_string(box.x) + ", " +
                     std::to_string(box.y) + ") is not inside an image of " +
                     std::to_string(plan.image.width) + " x " + std::to_string(plan.image.height);
    return nullptr;
  }
};

}  // namespace

Operation::Operation(const ResizedCrop& parameters)
    : implementation_(std::make_shared<ResizedCropOperation>(parameters)) {}

}  // namespace millrace
