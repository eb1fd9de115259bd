// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include "ops/operation_of.h"
#include "pixels/levels.h"

namespace millrace {
namespace {

/// Posterizes with probability p. Source: `RandomPosterize` in torchvision,
/// `ImageOps.posterize`.
class RandomPosterizeOperation final : public OperationOf<RandomPosterize, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.integer("bits", parameters_.bits, 0, 8);
    parameters.number("p", parameters_.p, {0, 1});
  }
  void run(SampleImage& image, Random& random) const override {
    if (random.uniform() < parameters_.p)
      posterize(std::span(image.pixels, image.bytes()), parameters_.bits);
  }
};

}  // namespace

Operation::Operation(const RandomPosterize& parameters)
    : implementation_(std::make_shared<RandomPosterizeOperation>(parameters)) {}

}  // namespace millrace
