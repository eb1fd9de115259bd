// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <millrace/geometry.h>
#include <millrace/random.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/shared_data.h"

namespace millrace {
namespace {

TEST(RandomResizedCrop, GivesTorchvisionsBoxes) {
  MILLRACE_NEEDS_SHARED("golden/crops.json");
  std::ifstream file(testing::shared_dir() / "golden/crops.json");
  const auto golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden.at("entries").size(), 1000U);
  for (const auto& entry : golden.at("entries")) {
    SCOPED_TRACE(entry.dump());
    const auto draws = entry.at("draws").get<std::vector<double>>();
    std::size_t drawn = 0;
    const Region box = random_resized_crop(
        {entry.at("width"), entry.at("height")}, {entry.at("scale")[0], entry.at("scale")[1]},
        {entry.at("ratio")[0], entry.at("ratio")[1]}, [&] { return draws.at(drawn++); });
    const auto& expected = entry.at("box");  // top, left, height, width
    EXPECT_EQ(box, (Region{expected[1], expected[0], expected[3], expected[2]}));
    EXPECT_EQ(drawn, draws.size());
  }
}

TEST(RandomResizedCrop, StaysInsideForAnyImage) {
  Random random(1, 0);
  for (int n = 0; n < 20000; ++n) {
    const Size image{1 + static_cast<int>(random.below(n % 2 == 0 ? 12 : 3000)),
                     1 + static_cast<int>(random.below(n % 3 == 0 ? 12 : 3000))};
    const double low = random.uniform(0.001, 1);
    const double ratio = random.uniform(0.01, 30);
    const Region box = random_resized_crop(image, {low, random.uniform(low, 1)},
                                           {ratio, ratio * random.uniform(1, 3)},
                                           [&] { return random.uniform(); });
    ASSERT_TRUE(box.x >= 0 && box.y >= 0 && box.width > 0 && box.height > 0 &&
                box.x + box.width <= image.width && box.y + box.height <= image.height)
        << box.width << " x " << box.height << " at (" << box.x << ", " << box.y << ") in "
        << image.width << " x " << image.height;
  }
}

TEST(ResizeShorter, KeepsTheAspectAndRoundsDown) {
  EXPECT_EQ(resize_shorter({500, 375}, 256), (Size{341, 256}));
  EXPECT_EQ(resize_shorter({375, 500}, 256), (Size{256, 341}));
  EXPECT_EQ(resize_shorter({300, 300}, 64), (Size{64, 64}));
  EXPECT_EQ(resize_shorter({1, 300}, 256), (Size{256, 76800}));
  EXPECT_EQ(resize_shorter({333, 500}, 333), (Size{333, 500}));
  // torchvision 0.29's `_compute_resized_output_size`.
  EXPECT_EQ(resize_shorter({500, 375}, 256, 341), (Size{341, 256}));
  EXPECT_EQ(resize_shorter({500, 375}, 256, 340), (Size{340, 255}));
  EXPECT_EQ(resize_shorter({375, 500}, 256, 300), (Size{225, 300}));
  EXPECT_EQ(resize_shorter({1, 10'000}, 8, 9), (Size{0, 9}));
  EXPECT_EQ(resize_shorter({1, 100'000'000}, 256), (Size{256, 1'000'000'000})) << "no overflow";
}

TEST(CenterCrop, RoundsHalvesToEven) {
  EXPECT_EQ(center_crop({341, 256}, {224, 224}), (Region{58, 16, 224, 224}));  // 58.5
  EXPECT_EQ(center_crop({343, 256}, {224, 224}), (Region{60, 16, 224, 224}));  // 59.5
  EXPECT_EQ(center_crop({224, 224}, {224, 224}), (Region{0, 0, 224, 224}));
}

TEST(CenterCrop, PadsTheLargerHalfAtTheEnd) {
  EXPECT_EQ(center_crop({64, 97}, {96, 96}), (Region{-16, 0, 96, 96}));  // 0.5
  EXPECT_EQ(center_crop({63, 95}, {96, 96}), (Region{-16, 0, 96, 96}));  // pads 16 and 17, 0 and 1
}

}  // namespace
}  // namespace millrace
