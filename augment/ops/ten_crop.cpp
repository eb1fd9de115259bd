// SPDX-License-Identifier: Apache-2.0
#include "ops/operation_of.h"

namespace millrace {
namespace {

class TenCropOperation final : public OperationOf<TenCrop, GeometricOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.output("size");
    parameters.flag("vertical_flip", parameters_.vertical_flip);
  }

  bool is_random() const override { return false; }
  bool makes_output() const override { return true; }
  int views() const override { return 10; }
  const char* plan(ResamplePlan& plan, Random&) const override {
    if (!plan.holds_output(name())) return nullptr;
    const Size image = plan.padded();
    Region window = crop_of_five(image, plan.output, plan.view % 5);
    // A window of the flipped image is the flipped window on the other side of the image.
    const bool flipped = plan.view >= 5;
    if (flipped && parameters_.vertical_flip) window.y = image.height - window.height - window.y;
    if (flipped && !parameters_.vertical_flip) window.x = image.width - window.width - window.x;
    plan.show(window.x, window.y);
    if (flipped) parameters_.vertical_flip ? plan.flip() : plan.mirror();
    return nullptr;
  }
};

}  // namespace

Operation::Operation(const TenCrop& parameters)
    : implementation_(std::make_shared<TenCropOperation>(parameters)) {}

}  // namespace millrace
