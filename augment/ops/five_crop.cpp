// SPDX-License-Identifier: Apache-2.0
#include "ops/operation_of.h"

namespace millrace {
namespace {

class FiveCropOperation final : public OperationOf<FiveCrop, GeometricOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override { parameters.output("size"); }

  bool is_random() const override { return false; }
  bool makes_output() const override { return true; }
  int views() const override { return 5; }
  const char* plan(ResamplePlan& plan, Random&) const override {
    if (!plan.holds_output(name())) return nullptr;
    const Region window = crop_of_five(plan.padded(), plan.output, plan.view);
    plan.show(window.x, window.y);
    return nullptr;
  }
};

}  // namespace

Operation::Operation(const FiveCrop& parameters)
    : implementation_(std::make_shared<FiveCropOperation>(parameters)) {}

}  // namespace millrace
