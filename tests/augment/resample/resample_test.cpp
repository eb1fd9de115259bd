// SPDX-License-Identifier: Apache-2.0
//
// Windows, flips, both orders of the passes and every instruction set, compared with the plain
// reference.
#include <gtest/gtest.h>
#include <millrace/random.h>

#include <algorithm>
#include <cmath>

#include "augment/orientations.h"
#include "augment/resample/resampled.h"
#include "augment/resample/vector_targets.h"
#include "resample/vnni_passes.h"
#include "support/sample_maker.h"

namespace millrace {
namespace {

using testing::Image;
using testing::whole_of;

constexpr Interpolation interpolations[] = {Interpolation::bilinear, Interpolation::bicubic,
                                            Interpolation::box,      Interpolation::hamming,
                                            Interpolation::lanczos,  Interpolation::nearest};

int drawn(Random& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
}

TEST(Resample, AnyWindowEqualsTheWholeResizedAndCut) {
  Resampler resampler;
  Random random(4, 2);
  unsigned in_parts = 0;
  for (unsigned n = 0; n < 400; ++n) {
    const int limit = n % 3 == 0 ? 12 : 150;
    const Size from{drawn(random, 1, limit), drawn(random, 1, limit)};
    const Size to{drawn(random, 1, 90), drawn(random, 1, 90)};
    const Image image = testing::noise(from.width, from.height, n);
    Resampling resampling = whole_of(from, to);
    resampling.interpolation = interpolations[n % 6];
    resampling.like = n % 2 == 0 ? Like::pillow_13 : Like::pillow_12;
    const Image whole = testing::plainly(resampling, image);
    const int x = drawn(random, 0, to.width - 1);
    const int y = drawn(random, 0, to.height - 1);
    resampling.window = {x, y, drawn(random, 1, to.width - x), drawn(random, 1, to.height - y)};
    Image expected = testing::cut(whole, resampling.window);
    if (n % 5 < 2) {
      resampling.mirrored = true;
      for (int row = 0; row < expected.height; ++row)
        for (int left = 0; left < expected.width / 2; ++left)
          std::swap_ranges(&expected.pixels[testing::at(expected, left, row)],
                           &expected.pixels[testing::at(expected, left, row)] + 3,
                           &expected.pixels[testing::at(expected, expected.width - 1 - left, row)]);
    }
    ASSERT_TRUE(testing::plainly(resampling, image).pixels == expected.pixels) << n;
    // The image as a file of any orientation may store it.
    const int orientation = static_cast<int>(n / 2 % 8) + 1;
    resampling.turn = turn_of(orientation);
    const Image stored = testing::stored_as(image, orientation);
    for (const std::int64_t target : testing::vector_targets()) {
      const testing::OnTarget on(target);
      ASSERT_TRUE(testing::resampled(resampler, resampling, stored).pixels == expected.pixels)
          << n << ": orientation " << orientation << ", " << from.width << " x " << from.height
          << " to " << to.width << " x " << to.height << " by " << testing::name_of(target);
      if (!resampler.takes_parts()) continue;
      ++in_parts;
      ASSERT_TRUE(testing::resampled_in_parts(resampler, resampling, stored).pixels ==
                  expected.pixels)
          << n << " by " << testing::name_of(target);
    }
  }
  EXPECT_GT(in_parts, 180 * testing::vector_targets().size());
}

// Memory between the window's rows belongs to others.
TEST(Resample, WritesTheWindowAlone) {
  const Image image = testing::noise(61, 47, 3);
  for (const Size to : {Size{30, 20}, Size{33, 50}, Size{1, 1}, Size{5, 2}, Size{120, 9}}) {
    const Resampling resampling = whole_of({61, 47}, to);
    const Image expected = testing::plainly(resampling, image);
    const std::size_t bytes = testing::row_bytes(to.width);
    const std::size_t stride = bytes + 7;
    for (const std::int64_t target : testing::vector_targets()) {
      const testing::OnTarget on(target);
      Resampler resampler;
      std::vector<std::uint8_t> made(stride * static_cast<std::size_t>(to.height), 0xA5);
      ASSERT_EQ(resampler.prepare(resampling), (Region{0, 0, 61, 47}));
      resampler.run(testing::view_of(image), made.data(), stride);
      for (std::size_t row = 0; row < static_cast<std::size_t>(to.height); ++row) {
        const auto begin = made.begin() + static_cast<std::ptrdiff_t>(row * stride);
        const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
        EXPECT_TRUE(std::equal(begin, end,
                               expected.pixels.begin() + static_cast<std::ptrdiff_t>(row * bytes)));
        EXPECT_EQ(std::count(end, end + 7, 0xA5), 7) << testing::name_of(target);
      }
    }
  }
}

TEST(Resample, NeedsNoMoreThanTheWindowIsMadeOf) {
  Resampler resampler;
  Resampling half = whole_of({200, 100}, {100, 50});
  EXPECT_EQ(resampler.prepare(half), (Region{0, 0, 200, 100}));
  half.window = {10, 20, 5, 3};
  // Pixel n of a half-size image needs the source's pixels 2n - 1 to 2n + 2.
  EXPECT_EQ(resampler.prepare(half), (Region{19, 39, 12, 8}));
  Resampling same = whole_of({64, 50}, {64, 50});
  same.window = {3, 4, 20, 10};
  for (const Interpolation interpolation : interpolations) {
    same.interpolation = interpolation;
    EXPECT_EQ(resampler.prepare(same), (Region{3, 4, 20, 10}));
  }
  // Pixel n lies so near to the source's pixel n + 1 that the weight of pixel n is rounded to zero.
  Resampling moved = whole_of({64, 50}, {60, 50});
  moved.box = SourceBox{std::nextafter(1.0F, 0.0F), 0, 61, 50};
  for (const std::int64_t target : testing::vector_targets()) {
    const testing::OnTarget on(target);
    EXPECT_EQ(resampler.prepare(moved), (Region{1, 0, 60, 50})) << testing::name_of(target);
  }
}

TEST(Resample, TheOrderOfPassesIsPillowsOfThatVersion) {
  Resampling tall = whole_of({300, 400}, {224, 247});
  EXPECT_TRUE(vertical_first(tall));  // 153 > 152
  tall.like = Like::pillow_12;
  EXPECT_FALSE(vertical_first(tall));
  EXPECT_FALSE(vertical_first(whole_of({300, 400}, {224, 248})));
  EXPECT_FALSE(vertical_first(whole_of({100, 200}, {224, 224})));
  EXPECT_TRUE(vertical_first(whole_of({100, 225}, {224, 224})));
}

// Newer versions of Highway have more names for sets with the instructions of AVX3_DL.
TEST(Resample, TakesDigitsByEachSetOfInstructionsThatHasThem) {
#if HWY_ARCH_X86
  for (const std::int64_t target : testing::vector_targets()) {
    const testing::OnTarget on(target);
    EXPECT_EQ(has_vnni_passes(), (target & -target) <= HWY_AVX3_DL) << testing::name_of(target);
  }
#endif
}

TEST(Resample, RunsByMoreThanOneInstructionSet) {
  if (!HWY_ARCH_X86) GTEST_SKIP() << "one instruction set alone is compiled";
  EXPECT_GE(testing::vector_targets().size(), 2U);
}

}  // namespace
}  // namespace millrace
