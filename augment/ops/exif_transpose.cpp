// SPDX-License-Identifier: Apache-2.0
#include "ops/operations.h"

namespace millrace {
namespace {

class ExifTransposeOperation final : public GeometricOperation {
 public:
  const char* name() const override { return "exif_transpose"; }
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

Operation::Operation(const ExifTranspose&) : held_(make_exif_transpose()) {}

std::shared_ptr<ImageOperation> make_exif_transpose() {
  return std::make_shared<ExifTransposeOperation>();
}

}  // namespace millrace
