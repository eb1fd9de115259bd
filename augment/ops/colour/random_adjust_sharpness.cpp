// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include "ops/colour/factors.h"
#include "ops/operation_of.h"
#include "pixels/adjust.h"

namespace millrace {
namespace {

/// Changes the sharpness with probability p. Source: `RandomAdjustSharpness` in torchvision,
/// `ImageEnhance.Sharpness`.
class RandomAdjustSharpnessOperation final
    : public OperationOf<RandomAdjustSharpness, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.number("sharpness_factor", parameters_.sharpness_factor, any_factor);
    parameters.number("p", parameters_.p, {0, 1});
  }
  ScratchSizes scratch(Size size) const override { return {sharpness_memory(size)}; }
  void run(SampleImage& image, Random& random) const override {
    if (random.uniform() >= parameters_.p) return;
    const Scratch::Borrowed memory = image.scratch.borrow(sharpness_memory(image.size));
    adjust_sharpness(image.pixels, image.size, parameters_.sharpness_factor, memory.bytes());
  }
};

}  // namespace

Operation::Operation(const RandomAdjustSharpness& parameters)
    : implementation_(std::make_shared<RandomAdjustSharpnessOperation>(parameters)) {}

}  // namespace millrace
