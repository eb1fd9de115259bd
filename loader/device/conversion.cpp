// SPDX-License-Identifier: Apache-2.0
#include <millrace/conversion_work.h>
#include <millrace/detail/pixel_arithmetic.h>
#include <millrace/error.h>

#include <algorithm>
#include <functional>
#include <string>

namespace millrace {
namespace {

/// Minimal number of elements that a thread converts at a time. They take some tens of
/// microseconds.
constexpr std::size_t elements_at_a_time = 65536;

/// For each channel: the converted value of each of the 256 levels.
template <typename Element>
using Table = std::array<std::array<Element, 256>, Conversion::max_channels>;

template <typename Element, std::size_t channels>
void convert_sample(const ConversionWork& work, const Table<Element>& table, std::size_t sample) {
  const std::size_t pixels = work.height * work.width;
  const bool flip = work.flips != nullptr && work.flips[sample] != 0;
  const bool nhwc = work.layout == ImageLayout::nhwc;
  const std::size_t next_pixel = nhwc ? channels : 1;
  const std::size_t next_channel = nhwc ? 1 : pixels;
  const std::uint8_t* const source = work.source + sample * pixels * channels;
  auto* to = static_cast<Element*>(work.destination) + sample * pixels * channels;
  for (std::size_t y = 0; y < work.height; ++y)
    for (std::size_t x = 0; x < work.width; ++x, to += next_pixel) {
      const std::size_t from = y * work.width + (flip ? work.width - 1 - x : x);
      for (std::size_t channel = 0; channel < channels; ++channel)
        to[channel * next_channel] = table[channel][source[from * channels + channel]];
    }
}

template <typename Element, typename ElementOf>
void convert_all(const ConversionWork& work, ElementOf element_of) {
  static constexpr std::array by_channels{convert_sample<Element, 1>, convert_sample<Element, 2>,
                                          convert_sample<Element, 3>, convert_sample<Element, 4>};
  static_assert(by_channels.size() == Conversion::max_channels);
  if (work.channels - 1 >= by_channels.size())
    throw Error(ErrorCode::invalid_argument,
                "images of " + std::to_string(work.channels) + " channels are not converted");
  Table<Element> table;
  for (std::size_t channel = 0; channel < work.channels; ++channel)
    for (std::size_t value = 0; value < table[channel].size(); ++value)
      table[channel][value] = element_of(static_cast<std::uint8_t>(value), channel);

  const std::size_t sample_elements = work.height * work.width * work.channels;
  const std::size_t at_a_time =
      elements_at_a_time / std::max<std::size_t>(sample_elements, 1) + 1;  // samples
  const auto convert_some = [&](std::size_t item) {
    const std::size_t end = std::min((item + 1) * at_a_time, work.samples);
    for (std::size_t sample = item * at_a_time; sample < end; ++sample)
      by_channels[work.channels - 1](work, table, sample);
  };
  const std::size_t items = (work.samples + at_a_time - 1) / at_a_time;
  if (work.workers != nullptr && items > 1)
    return work.workers->share(items, std::ref(convert_some));
  for (std::size_t item = 0; item < items; ++item) convert_some(item);
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
