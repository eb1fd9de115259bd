// SPDX-License-Identifier: Apache-2.0
// Internal: used only by millrace's own folders and not installed. Reference for tests of
// conversions.
#pragma once

#include <millrace/conversion_work.h>
#include <millrace/detail/pixel_arithmetic.h>

#include <cstddef>
#include <cstdint>

namespace millrace {

/// Converts by the definition, value by value, on the calling thread.
inline void convert_plainly(const ConversionWork& work) {
  const std::size_t pixels = work.height * work.width;
  for (std::size_t sample = 0; sample < work.samples; ++sample)
    for (std::size_t pixel = 0; pixel < pixels; ++pixel)
      for (std::size_t channel = 0; channel < work.channels; ++channel) {
        const std::size_t x = pixel % work.width;
        const bool flip = work.flips != nullptr && work.flips[sample] != 0;
        const std::size_t from = flip ? pixel - x + (work.width - 1 - x) : pixel;
        const std::size_t first = sample * pixels * work.channels;
        const std::size_t to =
            first + (work.layout == ImageLayout::nhwc ? pixel * work.channels + channel
                                                      : channel * pixels + pixel);
        const std::uint8_t value = work.source[first + from * work.channels + channel];
        const float number = normalised(value, work.mean[channel], work.std[channel]);
        if (work.dtype == DType::uint8) static_cast<std::uint8_t*>(work.destination)[to] = value;
        if (work.dtype == DType::float32) static_cast<float*>(work.destination)[to] = number;
        if (work.dtype == DType::float16)
          static_cast<std::uint16_t*>(work.destination)[to] = to_float16(number);
        if (work.dtype == DType::bfloat16)
          static_cast<std::uint16_t*>(work.destination)[to] = to_bfloat16(number);
      }
}

}  // namespace millrace
