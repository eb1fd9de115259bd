// SPDX-License-Identifier: Apache-2.0
#include <millrace/policies.h>

#include <algorithm>
#include <utility>

#include "ops/operations.h"
#include "ops/program.h"

namespace millrace {
namespace {

/// Law: one number is drawn for the whole list. Source: `RandomApply` in torchvision.
class RandomApplyOperation final : public PixelOperation {
 public:
  explicit RandomApplyOperation(RandomApply parameters) : parameters_(std::move(parameters)) {}

  const char* name() const override { return "random_apply"; }
  void describe(Parameters& parameters) override {
    parameters.operations("ops", parameters_.ops);
    parameters.number("p", parameters_.p, {0, 1});
  }
  bool moves_alone() const override {
    return std::ranges::any_of(parameters_.ops, millrace::moves_alone);
  }
  void run(SampleImage& image, Random& random) const override {
    if (random.uniform() >= parameters_.p) return;
    for (const Operation& op : parameters_.ops)
      static_cast<const PixelOperation&>(op.held()).run(image, random);
  }

 private:
  RandomApply parameters_;
};

}  // namespace

Operation::Operation(const RandomApply& parameters)
    : held_(std::make_shared<RandomApplyOperation>(parameters)) {}

std::shared_ptr<ImageOperation> make_random_apply() {
  return std::make_shared<RandomApplyOperation>(RandomApply{});
}

}  // namespace millrace
