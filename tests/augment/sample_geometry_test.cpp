// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <millrace/detail/sample_geometry.h>

#include "support/sample_maker.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::Maker;

TEST(SampleGeometry, IsThatOfTheSampleWithTheSameRandom) {
  const Bytes encoded = testing::encode(testing::noise(150, 90, 3), {});
  const testing::Image whole = testing::reference_decode(encoded);
  const Recipe recipe = Recipe::train(30);
  bool both[2] = {false, false};
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Random random(seed, 4);
    Random same(seed, 4);
    Maker maker(recipe);
    ASSERT_TRUE(maker.make(encoded, 0, random).is_ok());
    const SampleGeometry shown = sample_geometry(recipe, {150, 90}, 1, same);
    EXPECT_EQ(random(), same());
    EXPECT_EQ(shown.image, (Size{150, 90}));
    both[shown.mirrored ? 1 : 0] = true;
    const Region box{static_cast<int>(shown.left), static_cast<int>(shown.top),
                     static_cast<int>(shown.right - shown.left),
                     static_cast<int>(shown.bottom - shown.top)};
    testing::Image expected = testing::bilinear(testing::cut(whole, box), {30, 30});
    if (shown.mirrored)
      for (int y = 0; y < 30; ++y)
        for (int x = 0; x < 15; ++x)
          std::swap_ranges(&expected.pixels[testing::at(expected, x, y)],
                           &expected.pixels[testing::at(expected, x, y)] + 3,
                           &expected.pixels[testing::at(expected, 29 - x, y)]);
    EXPECT_EQ(maker.image().pixels, expected.pixels) << seed;
  }
  EXPECT_TRUE(both[0] && both[1]);
}

TEST(SampleGeometry, OfAWindowHasTheEdgesInTheImage) {
  Random random(1, 1);
  const SampleGeometry shown =
      sample_geometry(testing::window_of({80, 80}, 100), {300, 200}, 1, random);
  EXPECT_EQ(shown.left, 70);  // 2 x 35
  EXPECT_EQ(shown.right, 230);
  EXPECT_EQ(shown.top, 20);
  EXPECT_EQ(shown.bottom, 180);
  EXPECT_FALSE(shown.mirrored);
}

TEST(SampleGeometry, LeavesOutBorders) {
  Random random(1, 1);
  const Recipe recipe{{60, 60},
                      {Pad{.padding = {20, 30, 0, 5}, .padding_mode = PaddingMode::edge},
                       RandomCrop{}, RandomVerticalFlip{1}}};
  const SampleGeometry shown = sample_geometry(recipe, {40, 25}, 1, random);
  EXPECT_EQ(shown.left, 0);
  EXPECT_EQ(shown.top, 0);
  EXPECT_EQ(shown.right, 40);
  EXPECT_EQ(shown.bottom, 25);
  EXPECT_TRUE(shown.flipped);
  EXPECT_FALSE(shown.mirrored);
}

TEST(SampleGeometry, IsOfTheUprightImageWhereTheRecipeTurnsIt) {
  Random random(1, 1);
  const Recipe recipe{{8, 8}, {ExifTranspose{}, ResizedCrop{{150, 20, 40, 60}}}};
  const SampleGeometry shown = sample_geometry(recipe, {100, 200}, 6, random);
  EXPECT_EQ(shown.image, (Size{200, 100}));
  EXPECT_EQ(shown.left, 150);
  EXPECT_EQ(shown.bottom, 80);
  EXPECT_THROW(sample_geometry(recipe, {100, 200}, 1, random), Error) << "no such box";
  EXPECT_THROW(sample_geometry({{8, 8}, {}}, {100, 200}, 1, random), Error) << "no such recipe";
}

}  // namespace
}  // namespace millrace
