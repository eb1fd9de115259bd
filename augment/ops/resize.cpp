// SPDX-License-Identifier: Apache-2.0
#include "ops/operations.h"

namespace millrace {
namespace {

class ResizeOperation final : public GeometricOperation {
 public:
  explicit ResizeOperation(const Resize& parameters) : parameters_(parameters) {}

  const char* name() const override { return "resize"; }
  void describe(Parameters& parameters) override {
    parameters.integer("size", parameters_.size, 1, largest_side);
    describe_interpolation(parameters, parameters_.interpolation);
  }

  bool is_random() const override { return false; }
  bool makes_output() const override { return false; }
  const char* fold(Fold& fold, Random&) const override {
    if (fold.resized) return "the image would be resampled twice";
    Resampling& resampling = fold.resampling;
    resampling.to = resize_shorter(resampling.from, parameters_.size);
    resampling.window = {0, 0, resampling.to.width, resampling.to.height};
    resampling.interpolation = parameters_.interpolation;
    fold.resized = true;
    return nullptr;
  }

 private:
  Resize parameters_;
};

}  // namespace

Operation::Operation(const Resize& parameters)
    : held_(std::make_shared<ResizeOperation>(parameters)) {}

std::shared_ptr<ImageOperation> make_resize() {
  return std::make_shared<ResizeOperation>(Resize{});
}

}  // namespace millrace
