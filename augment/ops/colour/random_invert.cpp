// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include "ops/operation_of.h"
#include "pixels/levels.h"

namespace millrace {
namespace {

/// Inverts with probability p. Source: `RandomInvert` in torchvision, `ImageOps.invert`.
class RandomInvertOperation final : public OperationOf<RandomInvert, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override { parameters.number("p", parameters_.p, {0, 1}); }
  void run(SampleImage& image, Random& random) const override {
    if (random.uniform() < parameters_.p) invert(std::span(image.pixels, image.bytes()));
  }
};

}  // namespace

Operation::Operation(const RandomInvert& parameters)
    : implementation_(std::make_shared<RandomInvertOperation>(parameters)) {}

}  // namespace millrace
