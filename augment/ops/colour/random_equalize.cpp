// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include "ops/operations.h"
#include "pixels/levels.h"

namespace millrace {
namespace {

/// Law: equalized with probability p. Source: `RandomEqualize` in torchvision, `ImageOps.equalize`.
class RandomEqualizeOperation final : public PixelOperation {
 public:
  explicit RandomEqualizeOperation(const RandomEqualize& parameters) : parameters_(parameters) {}

  const char* name() const override { return "random_equalize"; }
  void describe(Parameters& parameters) override { parameters.number("p", parameters_.p, {0, 1}); }
  void run(SampleImage& image, Random& random) const override {
    if (random.uniform() < parameters_.p) equalize(std::span(image.pixels, image.bytes()));
  }

 private:
  RandomEqualize parameters_;
};

}  // namespace

Operation::Operation(const RandomEqualize& parameters)
    : held_(std::make_shared<RandomEqualizeOperation>(parameters)) {}

std::shared_ptr<ImageOperation> make_random_equalize() {
  return std::make_shared<RandomEqualizeOperation>(RandomEqualize{});
}

}  // namespace millrace
