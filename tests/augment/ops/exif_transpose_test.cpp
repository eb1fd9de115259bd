// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <millrace/image_transform.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "augment/orientations.h"
#include "augment/resample/sha256.h"
#include "support/recipe_text.h"
#include "support/run_program.h"
#include "support/sample_maker.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::encode;
using testing::Image;
using testing::Maker;
using testing::noise;
using testing::reference_decode;
using testing::window_of;
using testing::with_orientation;

Recipe upright(Recipe recipe) {
  recipe.ops.insert(recipe.ops.begin(), ExifTranspose{});
  return recipe;
}

/// Returns the upright pixels of a JPEG, by undoing `stored_as`.
Image seen(const Bytes& encoded, int orientation) {
  // Two of the turns are undone by each other, all others by themselves.
  const int undone = orientation == 6 ? 8 : orientation == 8 ? 6 : orientation;
  return testing::stored_as(reference_decode(encoded), undone);
}

Image made_by(const Recipe& recipe, const Bytes& encoded, std::uint64_t seed = 1) {
  Random random(seed, 1);
  Maker maker(recipe);
  const Status status = maker.make(encoded, 0, random);
  EXPECT_TRUE(status.is_ok()) << status.reason();
  return maker.image();
}

TEST(Turns, StoreAndSeeAreInverse) {
  const Image image = noise(7, 4, 1);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const int undone = orientation == 6 ? 8 : orientation == 8 ? 6 : orientation;
    EXPECT_EQ(testing::stored_as(testing::stored_as(image, orientation), undone).pixels,
              image.pixels);
  }
}

TEST(Turns, RegionsAreStoredWhereTheirPixelsAre) {
  const Image image = noise(9, 6, 3);
  const Region region{2, 1, 4, 3};
  for (int orientation = 0; orientation <= 9; ++orientation) {
    const Turn turn = turn_of(orientation);
    const Image stored = testing::stored_as(image, orientation <= 8 ? orientation : 1);
    EXPECT_EQ(turned({stored.width, stored.height}, turn), (Size{9, 6})) << orientation;
    EXPECT_EQ(
        testing::cut(stored, stored_region(region, {9, 6}, turn)).pixels,
        testing::stored_as(testing::cut(image, region), orientation <= 8 ? orientation : 1).pixels)
        << orientation;
  }
}

TEST(ExifTransposeOperation, MakesTheImageUprightBeforeAllElse) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    SCOPED_TRACE(orientation);
    const Bytes encoded = with_orientation(encode(noise(130, 96, 5), {}), orientation);
    const Image whole = seen(encoded, orientation);
    const Size half{whole.width / 2, whole.height / 2};
    EXPECT_EQ(made_by(upright(window_of(half, 48)), encoded).pixels,
              testing::bilinear(whole, half).pixels);
    // A window that reaches beyond the image.
    const Recipe wide = window_of({200, 31}, 96);
    EXPECT_EQ(made_by(upright(wide), encoded).pixels,
              testing::cut(whole, center_crop({whole.width, whole.height}, {200, 31})).pixels);
  }
}

TEST(ExifTransposeOperation, CropsAndFlipsAreOfTheUprightImage) {
  Recipe recipe = Recipe::train(40);
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(std::to_string(orientation) + ", seed " + std::to_string(seed));
      recipe.like = seed % 2 == 0 ? Like::pillow_13 : Like::pillow_12;
      const Bytes encoded = with_orientation(encode(noise(90, 210, 5), {}), orientation);
      const Image whole = seen(encoded, orientation);
      Random random(seed, 1);
      const Region box =
          random_resized_crop({whole.width, whole.height}, {0.08, 1}, {3.0 / 4.0, 4.0 / 3.0},
                              [&] { return random.uniform(); });
      const Image part = testing::cut(whole, box);
      Image expected{40, 40, 3, std::vector<std::uint8_t>(std::size_t{40} * 40 * 3)};
      resample_plainly(
          {.from = {part.width, part.height},
           .to = {40, 40},
           .window = {0, 0, 40, 40},
           .like = recipe.like,
           .mirrored = random.uniform() < 0.5},
          {part.pixels.data(), part.width, part.height, static_cast<std::size_t>(part.width) * 3},
          expected.pixels.data(), 120);
      EXPECT_EQ(made_by(upright(recipe), encoded, seed).pixels, expected.pixels);
    }
}

TEST(ExifTransposeOperation, IsNotDoneUnasked) {
  const Bytes encoded = encode(noise(50, 30, 2), {});
  for (int orientation = 1; orientation <= 8; ++orientation)
    EXPECT_EQ(made_by(window_of({50, 30}, 30), with_orientation(encoded, orientation)).pixels,
              reference_decode(encoded).pixels);
}

TEST(ExifTransposeOperation, LeavesAnImageThatSaysNothing) {
  const Bytes encoded = encode(noise(50, 30, 2), {});
  const Image whole = reference_decode(encoded);
  const Recipe recipe = upright(window_of({50, 30}, 30));
  EXPECT_EQ(made_by(recipe, encoded).pixels, whole.pixels);
  for (const int unknown : {0, 9, 255})
    EXPECT_EQ(made_by(recipe, with_orientation(encoded, unknown)).pixels, whole.pixels);
}

TEST(ExifTransposeOperation, LeavesNothingForTheNextImage) {
  const Bytes encoded = encode(noise(50, 30, 2), {});
  Maker maker(upright(window_of({30, 30}, 30)));
  Random random(1, 1);
  const auto made = [&](const Bytes& bytes) {
    EXPECT_TRUE(maker.make(bytes, 0, random).is_ok());
    return maker.image().pixels;
  };
  const auto plain = made(encoded);
  for (int orientation = 2; orientation <= 8; ++orientation) {
    EXPECT_NE(made(with_orientation(encoded, orientation)), plain);
    EXPECT_EQ(made(encoded), plain) << "after orientation " << orientation;
  }
}

TEST(ExifTransposeOperation, ComesThroughJsonAndIsTheFirst) {
  const std::string text = R"({"op": "exif_transpose"})";
  const std::string center = R"({"op": "center_crop"})";
  EXPECT_EQ(testing::operations_of("[" + text + ", " + center + "]").front(),
            Operation(ExifTranspose{}));
  EXPECT_EQ(
      testing::why_no_list(R"([{"op": "resize"}, )" + text + ", " + center + "]"),
      "train.json: ops[1] (exif_transpose) cannot be folded with the operations before it: the "
      "image must be turned before it is resized");
  EXPECT_EQ(
      testing::why_no_list("[" + text + ", " + text + ", " + center + "]"),
      "train.json: ops[1] (exif_transpose) cannot be folded with the operations before it: the "
      "image is upright already");
  EXPECT_EQ(testing::why_no_list(R"([{"op": "random_resized_crop"}, )" + text + "]"),
            "train.json: ops[1] (exif_transpose) cannot be folded with ops[0] "
            "(random_resized_crop), which makes the output already");
}

/// Returns "WIDTH HEIGHT SHA-256" of each file by this machine's Pillow. Empty without Pillow.
std::vector<std::string> by_pillow(const std::vector<std::string>& paths) {
  std::vector<std::string> arguments{"/usr/bin/python3", MILLRACE_LIVE_EXIF};
  arguments.insert(arguments.end(), paths.begin(), paths.end());
  const auto python = testing::run_program(arguments);
  std::vector<std::string> lines;
  if (python.exit_code == 77) return lines;
  EXPECT_EQ(python.exit_code, 0) << python.err;
  std::istringstream text(python.out);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

void expect_as_by_pillow(const std::vector<std::string>& paths) {
  const std::vector<std::string> expected = by_pillow(paths);
  if (expected.empty()) GTEST_SKIP() << "/usr/bin/python3 has no Pillow (python3-pil)";
  ASSERT_EQ(expected.size(), paths.size());
  for (std::size_t n = 0; n < paths.size(); ++n) {
    SCOPED_TRACE(paths[n]);
    Size size;
    std::istringstream(expected[n]) >> size.width >> size.height;
    const Image made = made_by(upright(window_of(size, std::min(size.width, size.height))),
                               testing::read_file(paths[n]));
    EXPECT_EQ(std::to_string(size.width) + " " + std::to_string(size.height) + " " +
                  testing::sha256(made.pixels),
              expected[n]);
  }
}

TEST(ExifTransposeOperation, EqualsPillowsOnOwnPictures) {
  const testing::TemporaryFolder folder;
  std::vector<std::string> paths;
  for (const testing::Encoding& encoding : testing::encodings())
    for (int orientation = 1; orientation <= 8; ++orientation) {
      paths.push_back((folder / (std::to_string(paths.size()) + ".jpg")).string());
      const Bytes encoded = with_orientation(encode(noise(67, 45, 9), encoding), orientation);
      std::ofstream(paths.back(), std::ios::binary)
          .write(reinterpret_cast<const char*>(encoded.data()),
                 static_cast<std::streamsize>(encoded.size()));
    }
  expect_as_by_pillow(paths);
}

TEST(ExifTransposeOperation, EqualsPillowsOnPngAndWebp) {
  const testing::TemporaryFolder folder;
  const auto python = testing::run_program(
      {"/usr/bin/python3", MILLRACE_LIVE_PICTURES, "exif", folder.path().string()});
  if (python.exit_code == 77) GTEST_SKIP() << "/usr/bin/python3 has no Pillow (python3-pil)";
  ASSERT_EQ(python.exit_code, 0) << python.err;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().extension() != ".rgb") paths.push_back(entry.path().string());
  EXPECT_EQ(paths.size(), 122U);
  expect_as_by_pillow(paths);
}

TEST(ExifTransposeOperation, EqualsPillowsOnPhotographs) {
  MILLRACE_NEEDS_SHARED("data/exif");
  std::vector<std::string> paths;
  for (const auto& path : testing::jpeg_files(testing::shared_dir() / "data/exif"))
    paths.push_back(path.string());
  ASSERT_EQ(paths.size(), 18U);
  expect_as_by_pillow(paths);
}

}  // namespace
}  // namespace millrace
