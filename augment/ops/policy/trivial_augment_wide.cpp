// SPDX-License-Identifier: Apache-2.0
#include <millrace/policies.h>

#include "ops/operation_of.h"
#include "ops/policy/augmentation_space.h"
#include "ops/warp/warp_parameters.h"

namespace millrace {
namespace {

/// Draws the operation uniformly, then its magnitude and its sign, if it has them.
/// Source: `TrivialAugmentWide` in torchvision.
class TrivialAugmentWideOperation final : public OperationOf<TrivialAugmentWide, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.integer("num_magnitude_bins", parameters_.num_magnitude_bins, 2, 1000);
    describe_warp_interpolation(parameters, parameters_.interpolation, Interpolation::nearest);
    parameters.colour("fill", parameters_.fill);
  }
  bool moves_alone() const override { return true; }
  ScratchSizes scratch(Size size) const override { return augment_scratch(size); }
  void run(SampleImage& image, Random& random) const override {
    const std::span<const Augmenting> space = trivial_augment_wide_space();
    const Augmenting& what = space[random.below(space.size())];
    const int bins = parameters_.num_magnitude_bins;
    const int bin = what.has_magnitudes()
                        ? static_cast<int>(random.below(static_cast<std::uint64_t>(bins)))
                        : 0;
    augment_at(image, what, bin, bins, {parameters_.interpolation, parameters_.fill}, random);
  }
};

}  // namespace

Operation::Operation(const TrivialAugmentWide& parameters)
    : implementation_(std::make_shared<TrivialAugmentWideOperation>(parameters)) {}

}  // namespace millrace
