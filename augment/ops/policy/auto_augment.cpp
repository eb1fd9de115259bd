// SPDX-License-Identifier: Apache-2.0
#include <millrace/policies.h>

#include "ops/operation_of.h"
#include "ops/policy/auto_augment_policies.h"
#include "ops/warp/warp_parameters.h"

namespace millrace {
namespace {

/// Draws a pair of operations uniformly. Then draws a number for each of the two, which decides
/// whether it runs. Then draws a sign for each, even for an operation without one. Source:
/// `AutoAugment` in torchvision.
class AutoAugmentOperation final : public OperationOf<AutoAugment, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    constexpr const char* names[] = {"imagenet", "cifar10", "svhn"};
    parameters.named("policy", parameters_.policy, names);
    describe_warp_interpolation(parameters, parameters_.interpolation, Interpolation::nearest);
    parameters.colour("fill", parameters_.fill);
  }
  bool moves_alone() const override { return true; }
  ScratchSizes scratch(Size size) const override { return augment_scratch(size); }
  void run(SampleImage& image, Random& random) const override {
    const AugmentationPair& pair = policy_of(parameters_.policy)[random.below(augmentation_pairs)];
    const std::array<double, 2> draws{random.uniform(), random.uniform()};
    const std::array<bool, 2> minus{random.below(2) == 0, random.below(2) == 0};
    for (std::size_t n = 0; n < pair.size(); ++n) {
      if (draws[n] >= pair[n].p) continue;
      const Augmenting& what = auto_augment_space()[static_cast<std::size_t>(pair[n].what)];
      const double magnitude = what.magnitude(pair[n].bin, 10, image.size);
      augment(image, what.what, what.has_sign && minus[n] ? -magnitude : magnitude,
              {parameters_.interpolation, parameters_.fill});
    }
  }
};

}  // namespace

Operation::Operation(const AutoAugment& parameters)
    : implementation_(std::make_shared<AutoAugmentOperation>(parameters)) {}

}  // namespace millrace
