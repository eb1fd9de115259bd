// SPDX-License-Identifier: Apache-2.0
#include "ops/operations.h"

namespace millrace {
namespace {

constexpr double steepest_ratio = 1000;

class RandomResizedCropOperation final : public GeometricOperation {
 public:
  explicit RandomResizedCropOperation(const RandomResizedCrop& parameters)
      : parameters_(parameters) {}

  const char* name() const override { return "random_resized_crop"; }
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

 private:
  RandomResizedCrop parameters_;
};

}  // namespace

Operation::Operation(const RandomResizedCrop& parameters)
    : held_(std::make_shared<RandomResizedCropOperation>(parameters)) {}

std::shared_ptr<ImageOperation> make_random_resized_crop() {
  return std::make_shared<RandomResizedCropOperation>(RandomResizedCrop{});
}

}  // namespace millrace
