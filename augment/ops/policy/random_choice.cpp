// SPDX-License-Identifier: Apache-2.0
#include <millrace/policies.h>

#include <algorithm>
#include <numeric>

#include "ops/operation_of.h"
#include "ops/program.h"

namespace millrace {
namespace {

/// Draws one operation with probability proportional to its weight, or uniformly without weights.
/// Source: `RandomChoice` in torchvision.
class RandomChoiceOperation final : public OperationOf<RandomChoice, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.operations("ops", parameters_.ops);
    parameters.numbers("p", parameters_.p,
                       {.what = "a weight for each operation, one of them above 0",
                        .counts = {parameters_.ops.size()},
                        .limits = {0, 1e6},
                        .weights = true});
  }
  bool moves_alone() const override {
    return std::ranges::any_of(parameters_.ops, millrace::moves_alone);
  }
  ScratchSizes scratch(Size size) const override { return scratch_of(parameters_.ops, size); }
  void run(SampleImage& image, Random& random) const override {
    const Operation& op = parameters_.ops[drawn(random)];
    static_cast<const PixelOperation&>(op.implementation()).run(image, random);
  }

 private:
  std::size_t drawn(Random& random) const {
    const std::vector<double>& weights = parameters_.p;
    if (weights.empty()) return random.below(parameters_.ops.size());
    double left = random.uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
    std::size_t last = 0;  // the last operation with a weight above 0
    for (std::size_t place = 0; place < weights.size(); ++place) {
      if (weights[place] <= 0) continue;
      last = place;
      if (left < weights[place]) break;
      left -= weights[place];
    }
    return last;
  }
};

}  // namespace

Operation::Operation(const RandomChoice& parameters)
    : implementation_(std::make_shared<RandomChoiceOperation>(parameters)) {}

}  // namespace millrace
