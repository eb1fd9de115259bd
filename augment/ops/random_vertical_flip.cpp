// SPDX-License-Identifier: Apache-2.0
#include "ops/operations.h"

namespace millrace {
namespace {

class RandomVerticalFlipOperation final : public PixelOperation {
 public:
  explicit RandomVerticalFlipOperation(const RandomVerticalFlip& parameters)
      : parameters_(parameters) {}

  const char* name() const override { return "random_vertical_flip"; }
  void describe(Parameters& parameters) override { parameters.number("p", parameters_.p, {0, 1}); }

  bool joins_resampling() const override { return true; }
  void plan(ResamplePlan& plan, Random& random) const override {
    if (random.uniform() < parameters_.p) plan.flip();
  }
  void run(SampleImage&, Random&) const override {}

 private:
  RandomVerticalFlip parameters_;
};

}  // namespace

Operation::Operation(const RandomVerticalFlip& parameters)
    : held_(std::make_shared<RandomVerticalFlipOperation>(parameters)) {}

std::shared_ptr<ImageOperation> make_random_vertical_flip() {
  return std::make_shared<RandomVerticalFlipOperation>(RandomVerticalFlip{});
}

}  // namespace millrace
