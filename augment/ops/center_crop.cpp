// SPDX-License-Identifier: Apache-2.0
#include "ops/operation_of.h"

namespace millrace {
namespace {

class CenterCropOperation final : public OperationOf<CenterCrop, GeometricOperation> {
 public:
  using OperationOf::OperationOf;

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

Operation::Operation(const CenterCrop& parameters)
    : implementation_(std::make_shared<CenterCropOperation>(parameters)) {}

}  // namespace millrace
