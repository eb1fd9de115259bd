// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include "ops/operations.h"
#include "pixels/adjust.h"

namespace millrace {
namespace {

/// Law: grey with probability p. Source: `RandomGrayscale` in torchvision, `Image.convert("L")`.
class RandomGrayscaleOperation final : public PixelOperation {
 public:
  explicit RandomGrayscaleOperation(const RandomGrayscale& parameters) : parameters_(parameters) {}

  const char* name() const override { return "random_grayscale"; }
  void describe(Parameters& parameters) override { parameters.number("p", parameters_.p, {0, 1}); }
  void run(SampleImage& image, Random& random) const override {
    if (random.uniform() < parameters_.p) make_grey(std::span(image.pixels, image.bytes()));
  }

 private:
  RandomGrayscale parameters_;
};

}  // namespace

Operation::Operation(const RandomGrayscale& parameters)
    : held_(std::make_shared<RandomGrayscaleOperation>(parameters)) {}

std::shared_ptr<ImageOperation> make_random_grayscale() {
  return std::make_shared<RandomGrayscaleOperation>(RandomGrayscale{});
}

}  // namespace millrace
