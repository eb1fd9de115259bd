// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include "ops/operations.h"
#include "pixels/levels.h"

namespace millrace {
namespace {

/// Law: stretched with probability p. Source: `RandomAutocontrast` in torchvision,
/// `ImageOps.autocontrast`.
class RandomAutocontrastOperation final : public PixelOperation {
 public:
  explicit RandomAutocontrastOperation(const RandomAutocontrast& parameters)
      : parameters_(parameters) {}

  const char* name() const override { return "random_autocontrast"; }
  void describe(Parameters& parameters) override { parameters.number("p", parameters_.p, {0, 1}); }
  void run(SampleImage& image, Random& random) const override {
    if (random.uniform() < parameters_.p) autocontrast(std::span(image.pixels, image.bytes()));
  }

 private:
  RandomAutocontrast parameters_;
};

}  // namespace

Operation::Operation(const RandomAutocontrast& parameters)
    : held_(std::make_shared<RandomAutocontrastOperation>(parameters)) {}

std::shared_ptr<ImageOperation> make_random_autocontrast() {
  return std::make_shared<RandomAutocontrastOperation>(RandomAutocontrast{});
}

}  // namespace millrace
