// SPDX-License-Identifier: Apache-2.0
#include "ops/operations.h"

namespace millrace {
namespace {

class ResizedCropOperation final : public GeometricOperation {
 public:
  explicit ResizedCropOperation(const ResizedCrop& parameters) : parameters_(parameters) {}

  const char* name() const override { return "resized_crop"; }
  void describe(Parameters& parameters) override {
    parameters.region("box", parameters_.box);
    describe_interpolation(parameters, parameters_.interpolation);
  }

  bool is_random() const override { return false; }
  bool makes_output() const override { return true; }
  const char* fold(Fold& fold, Random&) const override {
    if (const char* reason = fold.why_fixed()) return reason;
    fold.crop_and_resize(parameters_.box, parameters_.interpolation);
    const Region& box = parameters_.box;
    if (box.x > fold.image.width - box.width || box.y > fold.image.height - box.height)
      fold.problem = "resized_crop's box " + std::to_string(box.width) + " x " +
                     std::to_string(box.height) + " at (" + std::to_string(box.x) + ", " +
                     std::to_string(box.y) + ") is not inside an image of " +
                     std::to_string(fold.image.width) + " x " + std::to_string(fold.image.height);
    return nullptr;
  }

 private:
  ResizedCrop parameters_;
};

}  // namespace

Operation::Operation(const ResizedCrop& parameters)
    : held_(std::make_shared<ResizedCropOperation>(parameters)) {}

std::shared_ptr<ImageOperation> make_resized_crop() {
  return std::make_shared<ResizedCropOperation>(ResizedCrop{});
}

}  // namespace millrace
