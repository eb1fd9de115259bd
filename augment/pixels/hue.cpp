// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "pixels/adjust_passes.h"

namespace millrace {
namespace {

std::uint8_t to_level(double value) {
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(value), 0, 255));
}

/// Returns the 8-bit hue of a colour that is not grey.
std::uint8_t hue_of(int red, int green, int blue, int most, int range) {
  const auto share_from = [&](int level) {
    return static_cast<float>(most - level) / static_cast<float>(range);
  };
  const float from_red = share_from(red);
  const float from_green = share_from(green);
  const float from_blue = share_from(blue);
  float hue = 0;
  if (red == most)
    hue = from_blue - from_green;
  else if (green == most)
    hue = static_cast<float>(2.0 + from_red - from_blue);
  else
    hue = static_cast<float>(4.0 + from_green - from_red);
  hue = static_cast<float>(std::fmod(hue / 6.0 + 1.0, 1.0));
  return to_level(hue * 255.0);
}

}  // namespace

void shift_hue(std::uint8_t* pixel, std::uint8_t shift) {
  const std::uint8_t max_level = std::max({pixel[0], pixel[1], pixel[2]});
  const int most = max_level;
  const int range = most - std::min({pixel[0], pixel[1], pixel[2]});
  if (range == 0) return;
  const float part_of_most = static_cast<float>(range) / static_cast<float>(most);
  const std::uint8_t saturation = to_level(part_of_most * 255.0);
  const int hue = (hue_of(pixel[0], pixel[1], pixel[2], most, range) + shift) & 0xFF;
  const double place = hue * 6.0 / 255.0;
  const double sector = std::floor(place);
  const auto part = static_cast<float>(place - sector);
  const auto share = static_cast<float>(saturation / 255.0);
  const std::uint8_t least = to_level(std::round(most * (1.0 - share)));
  const std::uint8_t falling = to_level(std::round(most * (1.0 - share * part)));
  const std::uint8_t rising = to_level(std::round(most * (1.0 - share * (1.0 - part))));
  const std::array<std::array<std::uint8_t, 3>, 6> colours{{{max_level, rising, least},
                                                            {falling, max_level, least},
                                                            {least, max_level, rising},
                                                            {least, falling, max_level},
                                                            {rising, least, max_level},
                                                            {max_level, least, falling}}};
  std::ranges::copy(colours[static_cast<std::size_t>(sector) % 6], pixel);
}

}  // namespace millrace
