// SPDX-License-Identifier: Apache-2.0
#include "ops/operation_of.h"

namespace millrace {
namespace {

class ExifTransposeOperation final : public OperationOf<ExifTranspose, GeometricOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters&) override {}

  bool is_random() const override { return false; }
  bool makes_output() const override { return false; }
  bool needs_orientation() const override { return true; }
  const char* plan(ResamplePlan& plan, Random&) const override {
    if (plan.turns) return "the image is upright already";
    if (plan.resized) return "the image must be turned before it is resized";
    if (!plan.padding_map.borders.empty())
      return "the image must be turned before it gets a border";
    plan.turn();
    return nullptr;
  }
};

}  // namespace

Operation::Operation(const ExifTranspose& parameters)
    : implementation_(std::make_shared<ExifTransposeOperation>(parameters)) {}

}  // namespace millrace
