// SPDX-License-Identifier: Apache-2.0
#include "pixels/levels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace millrace {
namespace {

Levels same_levels() {
  Levels levels;
  std::iota(levels.begin(), levels.end(), std::uint8_t{0});
  return levels;
}

void map_levels(std::span<std::uint8_t> pixels, const std::array<Levels, 3>& levels) {
  std::uint8_t* const end = pixels.data() + pixels.size();
  for (std::uint8_t* pixel = pixels.data(); pixel != end; pixel += 3)
    for (std::size_t channel = 0; channel < 3; ++channel)
      pixel[channel] = levels[channel][pixel[channel]];
}

void map_by(Levels (*levels)(const Histogram&), std::span<std::uint8_t> pixels) {
  const std::array<Histogram, 3> counts = histograms(pixels);
  map_levels(pixels, {levels(counts[0]), levels(counts[1]), levels(counts[2])});
}

}  // namespace

std::array<Histogram, 3> histograms(std::span<const std::uint8_t> pixels) {
  // Two histograms of each channel, for even and for odd pixels. Adjacent pixels are often equal,
  // and a load of a count that was just stored is slow.
  std::array<std::array<Histogram, 3>, 2> counts{};
  const std::size_t pairs = pixels.size() / 6;
  const std::uint8_t* pixel = pixels.data();
  for (std::size_t pair = 0; pair < pairs; ++pair, pixel += 6)
    for (std::size_t channel = 0; channel < 3; ++channel) {
      ++counts[0][channel][pixel[channel]];
      ++counts[1][channel][pixel[3 + channel]];
    }
  if (pixels.size() % 6 != 0)
    for (std::size_t channel = 0; channel < 3; ++channel) ++counts[0][channel][pixel[channel]];
  for (std::size_t channel = 0; channel < 3; ++channel)
    for (std::size_t level = 0; level < 256; ++level)
      counts[0][channel][level] += counts[1][channel][level];
  return counts[0];
}

Levels equalized_levels(const Histogram& histogram) {
  const auto last =
      std::find_if(histogram.rbegin(), histogram.rend(), [](auto n) { return n > 0; });
  Levels levels = same_levels();
  if (last == histogram.rend()) return levels;
  const std::uint32_t all = std::accumulate(histogram.begin(), histogram.end(), 0U);
  const std::uint32_t step = (all - *last) / 255;
  if (step == 0) return levels;
  std::uint32_t count = step / 2;
  for (std::size_t level = 0; level < 256; ++level) {
    levels[level] = static_cast<std::uint8_t>(std::min(count / step, 255U));
    count += histogram[level];
  }
  return levels;
}

Levels stretched_levels(const Histogram& histogram) {
  Levels levels = same_levels();
  int low = 0;
  while (low < 255 && histogram[static_cast<std::size_t>(low)] == 0) ++low;
  int high = 255;
  while (high > 0 && histogram[static_cast<std::size_t>(high)] == 0) --high;
  if (high <= low) return levels;
  const double scale = 255.0 / (high - low);
  const double offset = -low * scale;
  for (int level = 0; level < 256; ++level)
    levels[static_cast<std::size_t>(level)] =
        static_cast<std::uint8_t>(std::clamp(static_cast<int>(level * scale + offset), 0, 255));
  return levels;
}

void equalize(std::span<std::uint8_t> pixels) { map_by(equalized_levels, pixels); }
void autocontrast(std::span<std::uint8_t> pixels) { map_by(stretched_levels, pixels); }

void invert(std::span<std::uint8_t> pixels) {
  for (std::uint8_t& level : pixels) level = static_cast<std::uint8_t>(255 - level);
}

void solarize(std::span<std::uint8_t> pixels, double threshold) {
  if (threshold > 255) return;
  const auto first = static_cast<std::uint8_t>(std::ceil(std::max(threshold, 0.0)));
  for (std::uint8_t& level : pixels)
    level = level < first ? level : static_cast<std::uint8_t>(255 - level);
}

void posterize(std::span<std::uint8_t> pixels, int bits) {
  const auto kept = static_cast<std::uint8_t>(0xFF00U >> static_cast<unsigned>(bits));
  for (std::uint8_t& level : pixels) level = static_cast<std::uint8_t>(level & kept);
}

}  // namespace millrace
