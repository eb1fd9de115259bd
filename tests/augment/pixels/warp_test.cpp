// SPDX-License-Identifier: Apache-2.0
//
// Warped images, compared with those of this machine's Pillow and torchvision, on random cuts and
// noise.
#include "pixels/warp.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/run_program.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

struct WarpCase {
  std::int32_t width, height, kind, filter, red, green, blue, none;
  double values[10];
};

using Pixels = std::vector<std::uint8_t>;

Pixels warped(const WarpCase& one, const Pixels& image) {
  const Size size{one.width, one.height};
  const Interpolation filters[] = {Interpolation::bilinear, Interpolation::bicubic,
                                   Interpolation::nearest};
  const Interpolation filter = filters[one.filter];
  const Colour fill{one.red, one.green, one.blue};
  const double* v = one.values;
  Pixels made(image.size());
  const auto warp_by = [&](const auto& map) {
    warp(image.data(), size, map, filter, fill, made.data());
  };
  switch (one.kind) {
    case 0:
      warp_by(AffineMap{v[0], v[1], v[2], v[3], v[4], v[5]});
      break;
    case 1:
      warp_by(PerspectiveMap{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]});
      break;
    case 2:
      rotate(image.data(), size, v[0], filter, fill, made.data());
      break;
    case 3:
      warp_by(affine_map({v[0], v[1]}, v[2], {v[3], v[4]}, v[5], {v[6], v[7]}));
      break;
    default: {
      const auto map =
          perspective_map(size, {Point{v[0], v[1]}, {v[2], v[3]}, {v[4], v[5]}, {v[6], v[7]}});
      EXPECT_TRUE(map);
      if (map) warp_by(*map);
    }
  }
  return made;
}

TEST(Warp, MakesThePixelsOfPillowAndTorchvision) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder / "cases").string();
  const auto python = testing::run_program({"/usr/bin/python3", MILLRACE_LIVE_WARP, path, "1600",
                                            testing::shared_dir() / "data/photos"});
  if (python.exit_code == 77) GTEST_SKIP() << "no Pillow (python3-pil)";
  ASSERT_EQ(python.exit_code, 0) << python.err;

  std::ifstream file(path, std::ios::binary);
  int cases = 0;
  int perspectives = 0;
  int other_perspectives = 0;
  for (WarpCase one; file.read(reinterpret_cast<char*>(&one), sizeof one); ++cases) {
    Pixels image(3 * static_cast<std::size_t>(one.width) * static_cast<std::size_t>(one.height));
    Pixels expected(image.size());
    for (Pixels* pixels : {&image, &expected})
      ASSERT_TRUE(file.read(reinterpret_cast<char*>(pixels->data()),
                            static_cast<std::streamsize>(pixels->size())));
    const Pixels made = warped(one, image);
    if (one.kind == 4) {
      ++perspectives;
      if (made != expected) ++other_perspectives;
      continue;
    }
    std::string values;
    for (const double value : one.values) values += " " + std::to_string(value);
    ASSERT_TRUE(made == expected) << "case " << cases << ", kind " << one.kind << ", filter "
                                  << one.filter << ", " << one.width << " x " << one.height << ":"
                                  << values;
  }
  EXPECT_LE(other_perspectives, perspectives / 10);
  EXPECT_GE(cases, 900);
}

TEST(Warp, HasNoPerspectiveWithThreeCornersOnOneLine) {
  EXPECT_FALSE(perspective_map({9, 9}, {Point{4, 4}, {8, 0}, {4, 4}, {0, 8}}));
  EXPECT_FALSE(perspective_map({9, 9}, {Point{0, 0}, {8, 0}, {4, 4}, {0, 8}}));
  EXPECT_FALSE(perspective_map({1, 9}, {Point{0, 0}, {0, 0}, {0, 8}, {0, 8}}));
  EXPECT_TRUE(perspective_map({9, 9}, {Point{1, 0}, {8, 0}, {5, 5}, {0, 8}}));
}

}  // namespace
}  // namespace millrace
