// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include "ops/operations.h"
#include "pixels/levels.h"

namespace millrace {
namespace {

/// Law: inverted with probability p. Source: `RandomInvert` in torchvision, `ImageOps.invert`.
class RandomInvertOperation final : public PixelOperation {
 public:
  explicit RandomInvertOperation(const RandomInvert& parameters) : parameters_(parameters) {}

  const char* name() const override { return "random_invert"; }
  void describe(Parameters& parameters) override { parameters.number("p", parameters_.p, {0, 1}); }
  void run(SampleImage& image, Random& random) const override {
    if (random.uniform() < parameters_.p) invert(std::span(image.pixels, image.bytes()));
  }

 private:
  RandomInvert parameters_;
};

}  // namespace

Operation::Operation(const RandomInvert& parameters)
    : held_(std::make_shared<RandomInvertOperation>(parameters)) {}

std::shared_ptr<ImageOperation> make_random_invert() {
  return std::make_shared<RandomInvertOperation>(RandomInvert{});
}

}  // namespace millrace
