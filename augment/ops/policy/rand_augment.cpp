// SPDX-License-Identifier: Apache-2.0
#include <millrace/policies.h>

#include "ops/operation_of.h"
#include "ops/policy/augmentation_space.h"
#include "ops/warp/warp_parameters.h"

namespace millrace {
namespace {

/// Draws each operation uniformly, with replacement, and then its sign, if it has one. Source:
/// `RandAugment` in torchvision.
class RandAugmentOperation final : public OperationOf<RandAugment, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.integer("num_ops", parameters_.num_ops, 1, 100);
    parameters.integer("num_magnitude_bins", parameters_.num_magnitude_bins, 2, 1000);
    parameters.integer("magnitude", parameters_.magnitude, 0, parameters_.num_magnitude_bins - 1);
    describe_warp_interpolation(parameters, parameters_.interpolation, Interpolation::nearest);
    parameters.colour("fill", parameters_.fill);
  }
  bool moves_alone() const override { return true; }
  ScratchSizes scratch(Size size) const override { return augment_scratch(size); }
  void run(SampleImage& image, Random& random) const override {
    const std::span<const Augmenting> space = rand_augment_space();
    for (int n = 0; n < parameters_.num_ops; ++n)
      augment_at(image, space[random.below(space.size())], parameters_.magnitude,
                 parameters_.num_magnitude_bins, {parameters_.interpolation, parameters_.fill},
                 random);
  }
};

}  // namespace

Operation::Operation(const RandAugment& parameters)
    : implementation_(std::make_shared<RandAugmentOperation>(parameters)) {}

}  // namespace millrace
