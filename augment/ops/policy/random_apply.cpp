// SPDX-License-Identifier: Apache-2.0
#include <millrace/policies.h>

#include <algorithm>

#include "ops/operation_of.h"
#include "ops/program.h"

namespace millrace {
namespace {

/// Draws one number for the whole list. Source: `RandomApply` in torchvision.
class RandomApplyOperation final : public OperationOf<RandomApply, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.operations("ops", parameters_.ops);
    parameters.number("p", parameters_.p, {0, 1});
  }
  bool moves_alone() const override {
    return std::ranges::any_of(parameters_.ops, millrace::moves_alone);
  }
  ScratchSizes scratch(Size size) const override { return scratch_of(parameters_.ops, size); }
  void run(SampleImage& image, Random& random) const override {
    if (random.uniform() >= parameters_.p) return;
    for (const Operation& op : parameters_.ops)
      static_cast<const PixelOperation&>(op.implementation()).run(image, random);
  }
};

}  // namespace

Operation::Operation(const RandomApply& parameters)
    : implementation_(std::make_shared<RandomApplyOperation>(parameters)) {}

}  // namespace millrace
