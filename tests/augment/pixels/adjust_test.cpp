// SPDX-License-Identifier: Apache-2.0
#include "pixels/adjust.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "augment/resample/vector_targets.h"
#include "pixels/adjust_passes.h"
#include "pixels/slope.h"

namespace millrace {
namespace {

/// Vectors of a fifth of all colours, compared with single pixels, which use Pillow's floats.
TEST(Hue, IsThatOfPillowsFloats) {
  std::vector<std::uint8_t> all(std::size_t{3} << 16U);
  for (int red = 0; red < 256; red += 5) {
    for (std::size_t n = 0; n < all.size() / 3; ++n) {
      all[3 * n] = static_cast<std::uint8_t>(red);
      all[3 * n + 1] = static_cast<std::uint8_t>(n >> 8U);
      all[3 * n + 2] = static_cast<std::uint8_t>(n);
    }
    // A different shift for each red.
    const double hue = (red - 128) / 256.0;
    std::vector<std::uint8_t> one_by_one = all;
    for (std::size_t n = 0; n < all.size(); n += 3)
      adjust(std::span(one_by_one).subspan(n, 3), Property::hue, hue);
    for (const std::int64_t target : testing::vector_targets()) {
      const testing::OnTarget on(target);
      std::vector<std::uint8_t> made = all;
      adjust(made, Property::hue, hue);
      ASSERT_TRUE(made == one_by_one) << red << ", " << testing::name_of(target);
    }
  }
}

/// Makes one adjustment, pixel by pixel, without vectors.
void adjust_plainly(std::vector<std::uint8_t>& pixels, const Adjustment& one) {
  if (one.of != Property::contrast) {
    for (std::size_t n = 0; n < pixels.size(); n += 3)
      adjust(std::span(pixels).subspan(n, 3), std::span(&one, 1));
    return;
  }
  double sum = 0;
  for (std::size_t n = 0; n < pixels.size(); n += 3)
    sum += luma(pixels[n], pixels[n + 1], pixels[n + 2]);
  const double mean = sum / static_cast<double>(pixels.size() / 3);
  for (std::uint8_t& level : pixels)
    level = blended(static_cast<int>(mean + 0.5), level, static_cast<float>(one.factor));
}

/// Lists that take one pass, several passes, and more than one mean, over whole groups of a
/// vector's pixels and a remainder.
TEST(Adjustments, AreTakenInFewPassesAsPixelByPixel) {
  std::mt19937 draw(5);
  for (int number = 0; number < 300; ++number) {
    std::vector<std::uint8_t> pixels(3 * (1 + draw() % 300));
    for (std::uint8_t& level : pixels) level = static_cast<std::uint8_t>(draw());
    std::vector<Adjustment> list(1 + draw() % 9);
    for (Adjustment& one : list) {
      one.of = static_cast<Property>(draw() % 4);
      const double share = static_cast<double>(draw() % 1000) / 1000;
      one.factor = one.of == Property::hue ? share - 0.5 : 2 * share;
    }
    std::vector<std::uint8_t> plain = pixels;
    for (const Adjustment& one : list) adjust_plainly(plain, one);
    for (const std::int64_t target : testing::vector_targets()) {
      const testing::OnTarget on(target);
      std::vector<std::uint8_t> made = pixels;
      adjust(made, list);
      ASSERT_EQ(made, plain) << number << ", " << testing::name_of(target);
    }
  }
}

}  // namespace
}  // namespace millrace
