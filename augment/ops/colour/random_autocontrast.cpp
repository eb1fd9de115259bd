// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include "ops/operation_of.h"
#include "pixels/levels.h"

namespace millrace {
namespace {

/// Stretches the contrast with probability p. Source: `RandomAutocontrast` in torchvision,
/// `ImageOps.autocontrast`.
class RandomAutocontrastOperation final : public OperationOf<RandomAutocontrast, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override { parameters.number("p", parameters_.p, {0, 1}); }
  void run(SampleImage& image, Random& random) const override {
    if (random.uniform() < parameters_.p) autocontrast(std::span(image.pixels, image.bytes()));
  }
};

}  // namespace

Operation::Operation(const RandomAutocontrast& parameters)
    : implementation_(std::make_shared<RandomAutocontrastOperation>(parameters)) {}

}  // namespace millrace
