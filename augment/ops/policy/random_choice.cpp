// SPDX-License-Identifier: Apache-2.0
#include <millrace/policies.h>

#include <algorithm>
#include <utility>

#include "ops/operations.h"
#include "ops/program.h"

namespace millrace {
namespace {

/// Law: uniform. Source: `RandomChoice` in torchvision.
class RandomChoiceOperation final : public PixelOperation {
 public:
  explicit RandomChoiceOperation(RandomChoice parameters) : parameters_(std::move(parameters)) {}

  const char* name() const override { return "random_choice"; }
  void describe(Parameters& parameters) override { parameters.operations("ops", parameters_.ops); }
  bool moves_alone() const override {
    return std::ranges::any_of(parameters_.ops, millrace::moves_alone);
  }
  void run(SampleImage& image, Random& random) const override {
    const Operation& op = parameters_.ops[random.below(parameters_.ops.size())];
    static_cast<const PixelOperation&>(op.held()).run(image, random);
  }

 private:
  RandomChoice parameters_;
};

}  // namespace

Operation::Operation(const RandomChoice& parameters)
    : held_(std::make_shared<RandomChoiceOperation>(parameters)) {}

std::shared_ptr<ImageOperation> make_random_choice() {
  return std::make_shared<RandomChoiceOperation>(RandomChoice{});
}

}  // namespace millrace
