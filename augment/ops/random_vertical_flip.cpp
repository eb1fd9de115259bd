// SPDX-License-Identifier: Apache-2.0
#include "ops/operation_of.h"

namespace millrace {
namespace {

class RandomVerticalFlipOperation final : public OperationOf<RandomVerticalFlip, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override { parameters.number("p", parameters_.p, {0, 1}); }

  bool joins_resampling() const override { return true; }
  void plan(ResamplePlan& plan, Random& random) const override {
    if (random.uniform() < parameters_.p) plan.flip();
  }
  void run(SampleImage&, Random&) const override {}
};

}  // namespace

Operation::Operation(const RandomVerticalFlip& parameters)
    : implementation_(std::make_shared<RandomVerticalFlipOperation>(parameters)) {}

}  // namespace millrace
