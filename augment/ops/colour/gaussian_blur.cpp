// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include "ops/operations.h"
#include "pixels/blur.h"

namespace millrace {
namespace {

/// Law: always, with a standard deviation that is uniform in `sigma`. Source: `GaussianBlur` in
/// torchvision.
class GaussianBlurOperation final : public PixelOperation {
 public:
  explicit GaussianBlurOperation(const GaussianBlur& parameters) : parameters_(parameters) {}

  const char* name() const override { return "gaussian_blur"; }
  void describe(Parameters& parameters) override {
    parameters.odd_integer("kernel_size", parameters_.kernel_size, 1, 1023);
    parameters.range("sigma", parameters_.sigma, {0.001, 1000});
  }
  void run(SampleImage& image, Random& random) const override {
    const double sigma = random.uniform(parameters_.sigma.low, parameters_.sigma.high);
    const Scratch::Borrowed memory =
        image.scratch.borrow(gaussian_blur_memory(image.size, parameters_.kernel_size));
    gaussian_blur(image.pixels, image.size, parameters_.kernel_size, sigma, memory.bytes());
  }

 private:
  GaussianBlur parameters_;
};

}  // namespace

Operation::Operation(const GaussianBlur& parameters)
    : held_(std::make_shared<GaussianBlurOperation>(parameters)) {}

std::shared_ptr<ImageOperation> make_gaussian_blur() {
  return std::make_shared<GaussianBlurOperation>(GaussianBlur{});
}

}  // namespace millrace
