// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include "ops/operation_of.h"
#include "pixels/adjust.h"

namespace millrace {
namespace {

/// Always makes the image grey. Source: `Grayscale(3)` in torchvision, `Image.convert("L")`.
class GrayscaleOperation final : public OperationOf<Grayscale, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    constexpr const char* channels[] = {"3"};
    parameters.only("num_output_channels", channels);
  }
  void run(SampleImage& image, Random&) const override {
    make_grey(std::span(image.pixels, image.bytes()));
  }
};

}  // namespace

Operation::Operation(const Grayscale& parameters)
    : implementation_(std::make_shared<GrayscaleOperation>(parameters)) {}

}  // namespace millrace
