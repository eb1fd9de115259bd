// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include "ops/operation_of.h"
#include "pixels/levels.h"

namespace millrace {
namespace {

/// Equalizes with probability p. Source: `RandomEqualize` in torchvision, `ImageOps.equalize`.
class RandomEqualizeOperation final : public OperationOf<RandomEqualize, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override { parameters.number("p", parameters_.p, {0, 1}); }
  void run(SampleImage& image, Random& random) const override {
    if (random.uniform() < parameters_.p) equalize(std::span(image.pixels, image.bytes()));
  }
};

}  // namespace

Operation::Operation(const RandomEqualize& parameters)
    : implementation_(std::make_shared<RandomEqualizeOperation>(parameters)) {}

}  // namespace millrace
