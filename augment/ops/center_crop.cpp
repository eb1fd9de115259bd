// SPDX-License-Identifier: Apache-2.0
#include "ops/operations.h"

namespace millrace {
namespace {

class CenterCropOperation final : public GeometricOperation {
 public:
  const char* name() const override { return "center_crop"; }
  void describe(Parameters& parameters) override { parameters.output("size"); }

  bool is_random() const override { return false; }
  bool makes_output() const override { return true; }
  const char* plan(ResamplePlan& plan, Random&) const override {
    const Region window = center_crop(plan.padded(), plan.output);
    plan.show(window.x, window.y);
    return nullptr;
  }
};

}  // namespace

Operation::Operation(const CenterCrop&) : held_(make_center_crop()) {}

std::shared_ptr<ImageOperation> make_center_crop() {
  return std::make_shared<CenterCropOperation>();
}

}  // namespace millrace
