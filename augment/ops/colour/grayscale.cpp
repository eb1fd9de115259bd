// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include "ops/operations.h"
#include "pixels/adjust.h"

namespace millrace {
namespace {

/// Law: always applied. Source: `Grayscale(3)` in torchvision, `Image.convert("L")`.
class GrayscaleOperation final : public PixelOperation {
 public:
  const char* name() const override { return "grayscale"; }
  void describe(Parameters& parameters) override {
    constexpr const char* channels[] = {"3"};
    parameters.only("num_output_channels", channels);
  }
  void run(SampleImage& image, Random&) const override {
    make_grey(std::span(image.pixels, image.bytes()));
  }
};

}  // namespace

Operation::Operation(const Grayscale&) : held_(make_grayscale()) {}

std::shared_ptr<ImageOperation> make_grayscale() { return std::make_shared<GrayscaleOperation>(); }

}  // namespace millrace
