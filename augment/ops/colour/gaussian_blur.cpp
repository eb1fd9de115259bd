// SPDX-License-Identifier: Apache-2.0
#include <millrace/colour_operations.h>

#include "ops/operation_of.h"
#include "pixels/blur.h"

namespace millrace {
namespace {

/// Always blurs. The standard deviation is uniform in `sigma`. Source: `GaussianBlur` in
/// torchvision.
class GaussianBlurOperation final : public OperationOf<GaussianBlur, PixelOperation> {
 public:
  using OperationOf::OperationOf;

  void describe(Parameters& parameters) override {
    describe_kernel(parameters);
    parameters.range("sigma", parameters_.sigma, {0.001, 1000}, OneNumber::both_ends);
  }
  ScratchSizes scratch(Size size) const override { return {gaussian_blur_memory(size, kernel())}; }
  void run(SampleImage& image, Random& random) const override {
    const double sigma = random.uniform(parameters_.sigma.low, parameters_.sigma.high);
    const Scratch::Borrowed memory =
        image.scratch.borrow(gaussian_blur_memory(image.size, kernel()));
    gaussian_blur(image.pixels, image.size, kernel(), sigma, memory.bytes());
  }

 private:
  int kernel_height() const {
    return parameters_.kernel_height != 0 ? parameters_.kernel_height : parameters_.kernel_size;
  }

  Size kernel() const { return {parameters_.kernel_size, kernel_height()}; }

  void describe_kernel(Parameters& parameters) {
    static constexpr NumberList list{.what = "an odd integer, or two, [width, height]",
                                     .counts = {1, 2},
                                     .limits = {1, 1023},
                                     .whole = true,
                                     .odd = true};
    std::vector<double> kernel{static_cast<double>(parameters_.kernel_size)};
    if (kernel_height() != parameters_.kernel_size)
      kernel.push_back(static_cast<double>(kernel_height()));
    const std::vector<double> before = kernel;
    parameters.numbers("kernel_size", kernel, list);
    if (kernel == before) return;
    parameters_.kernel_size = static_cast<int>(kernel.front());
    parameters_.kernel_height = static_cast<int>(kernel.back());
  }
};

}  // namespace

Operation::Operation(const GaussianBlur& parameters)
    : implementation_(std::make_shared<GaussianBlurOperation>(parameters)) {}

}  // namespace millrace
