// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include "ops/operation_of.h"
#include "pixels/levels.h"

namespace millrace {
namespace {

/// Solarizes with probability p. Source: `RandomSolarize` in torchvision, `ImageOps.solarize`.
class RandomSolarizeOperation final : public OperationOf<RandomSolarize, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    parameters.number("threshold", parameters_.threshold, {0, 256});
    parameters.number("p", parameters_.p, {0, 1});
  }
  void run(SampleImage& image, Random& random) const override {
    if (random.uniform() < parameters_.p)
      solarize(std::span(image.pixels, image.bytes()), parameters_.threshold);
  }
};

}  // namespace

Operation::Operation(const RandomSolarize& parameters)
    : implementation_(std::make_shared<RandomSolarizeOperation>(parameters)) {}

}  // namespace millrace
