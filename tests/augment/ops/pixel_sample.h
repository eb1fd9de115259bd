// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ops/image_operation.h"

namespace millrace::testing {

/// An image in a sample of its own, as operations on pixels receive it.
class PixelSample {
 public:
  explicit PixelSample(Size image_size)
      : size(image_size),
        pixels(3 * static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height)),
        spec_({{"image", DType::uint8, shape()}}),
        places_{Tensor{pixels.data(), DType::uint8, shape()}},
        sample_(spec_, places_),
        image{pixels.data(), size, sample_, scratch_} {}
  PixelSample(const PixelSample&) = delete;
  PixelSample& operator=(const PixelSample&) = delete;

  void run(const Operation& operation, Random& random) {
    dynamic_cast<const PixelOperation&>(operation.implementation()).run(image, random);
  }

  const Size size;
  std::vector<std::uint8_t> pixels;

 private:
  Shape shape() const {
    return {static_cast<std::size_t>(size.height), static_cast<std::size_t>(size.width), 3};
  }

  SampleSpec spec_;
  std::vector<Tensor> places_;
  Sample sample_;
  Scratch scratch_;

 public:
  SampleImage image;
};

}  // namespace millrace::testing
