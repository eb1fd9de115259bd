// SPDX-License-Identifier: Apache-2.0
#include <millrace/conversion_work.h>
#include <millrace/error.h>
#include <millrace/pixel_arithmetic.h>

#include <string>

namespace millrace {
namespace {

/// Puts `element_of(value, channel)` of every value where it belongs.
template <typename Element, typename ElementOf>
void convert_all(const ConversionWork& work, ElementOf element_of) {
  const std::size_t pixels = work.height * work.width;
  auto* const destination = static_cast<Element*>(work.destination);
  for (std::size_t sample = 0; sample < work.samples; ++sample) {
    const bool flip = work.flips != nullptr && work.flips[sample] != 0;
    const std::size_t first = sample * pixels * work.channels;
    for (std::size_t y = 0; y < work.height; ++y)
      for (std::size_t x = 0; x < work.width; ++x) {
        const std::size_t from = (y * work.width + (flip ? work.width - 1 - x : x)) * work.channels;
        const std::size_t pixel = y * work.width + x;
        for (std::size_t channel = 0; channel < work.channels; ++channel) {
          const std::size_t to = work.layout == ImageLayout::nhwc ? pixel * work.channels + channel
                                                                  : channel * pixels + pixel;
          destination[first + to] = element_of(work.source[first + from + channel], channel);
        }
      }
  }
}

}  // namespace

void ConversionWork::run_on_host() const {
  const auto value_of = [this](std::uint8_t value, std::size_t channel) {
    return normalised(value, mean[channel], std[channel]);
  };
  switch (dtype) {
    case DType::uint8:
      return convert_all<std::uint8_t>(*this,
                                       [](std::uint8_t value, std::size_t) { return value; });
    case DType::float16:
      return convert_all<std::uint16_t>(*this,
                                        [&value_of](std::uint8_t value, std::size_t channel) {
                                          return to_float16(value_of(value, channel));
                                        });
    case DType::bfloat16:
      return convert_all<std::uint16_t>(*this,
                                        [&value_of](std::uint8_t value, std::size_t channel) {
                                          return to_bfloat16(value_of(value, channel));
                                        });
    case DType::float32:
      return convert_all<float>(*this, value_of);
    default:
      throw Error(ErrorCode::invalid_argument,
                  std::string("images are not converted to ") + to_string(dtype));
  }
}

}  // namespace millrace
