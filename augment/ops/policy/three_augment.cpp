// SPDX-License-Identifier: Apache-2.0
#include <millrace/policies.h>

#include "ops/operation_of.h"
#include "pixels/adjust.h"
#include "pixels/blur.h"
#include "pixels/levels.h"

namespace millrace {
namespace {

/// Draws one of three operations uniformly. The blur's radius is uniform in 0.1 to 2. Source:
/// augment.py of DeiT III.
class ThreeAugmentOperation final : public OperationOf<ThreeAugment, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters&) override {}
  ScratchSizes scratch(Size size) const override {
    return {extended_box_blur_memory(size, radii.high)};
  }
  void run(SampleImage& image, Random& random) const override {
    const std::span pixels(image.pixels, image.bytes());
    switch (random.below(3)) {
      case 0:
        return make_grey(pixels);
      case 1:
        return solarize(pixels, 128);
      default: {
        const double radius = random.uniform(radii.low, radii.high);
        const Scratch::Borrowed memory =
            image.scratch.borrow(extended_box_blur_memory(image.size, radius));
        return extended_box_blur(image.pixels, image.size, radius, memory.bytes());
      }
    }
  }

 private:
  static constexpr Range radii{0.1, 2.0};
};

}  // namespace

Operation::Operation(const ThreeAugment& parameters)
    : implementation_(std::make_shared<ThreeAugmentOperation>(parameters)) {}

}  // namespace millrace
