// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include "ops/operation_of.h"
#include "pixels/adjust.h"

namespace millrace {
namespace {

/// Makes the image grey with probability p. Source: `RandomGrayscale` in torchvision,
/// `Image.convert("L")`.
class RandomGrayscaleOperation final : public OperationOf<RandomGrayscale, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override { parameters.number("p", parameters_.p, {0, 1}); }
  void run(SampleImage& image, Random& random) const override {
    if (random.uniform() < parameters_.p) make_grey(std::span(image.pixels, image.bytes()));
  }
};

}  // namespace

Operation::Operation(const RandomGrayscale& parameters)
    : implementation_(std::make_shared<RandomGrayscaleOperation>(parameters)) {}

}  // namespace millrace
