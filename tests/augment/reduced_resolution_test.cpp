// SPDX-License-Identifier: Apache-2.0
//
// Recipes that decode large images at a lower resolution: when they do, and their pixels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/image_decoder.h>

#include <cmath>
#include <string>

#include "augment/orientations.h"
#include "support/sample_maker.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::encode;
using testing::Image;
using testing::Maker;
using testing::noise;

Recipe reduced(const Recipe& exact) {
  Recipe recipe = exact;
  recipe.resolution = Resolution::reduced;
  return recipe;
}

std::string decoder_of(const Recipe& recipe, const Bytes& encoded) {
  Maker maker(recipe);
  Random random(1, 1);
  EXPECT_TRUE(maker.make(encoded, 0, random).is_ok());
  return maker.decoder_name();
}

TEST(ReducedResolution, IsTheLowestThatTheOutputDoesNotExceed) {
  const Bytes encoded = encode(noise(400, 300, 1), {});
  const auto of = [](int width, int height, int side) {
    return reduced({{side, side}, {ResizedCrop{{3, 5, width, height}}}});
  };
  EXPECT_EQ(decoder_of(of(320, 256, 32), encoded), "millrace (reduced to 1/8)");
  EXPECT_EQ(decoder_of(of(320, 255, 32), encoded), "millrace (reduced to 1/4)");
  EXPECT_EQ(decoder_of(of(127, 200, 32), encoded), "millrace (reduced to 1/2)");
  EXPECT_EQ(decoder_of(of(63, 200, 32), encoded), "millrace");
  Recipe exact = of(320, 256, 32);
  exact.resolution = Resolution::exact;
  EXPECT_EQ(decoder_of(exact, encoded), "millrace");
  EXPECT_EQ(decoder_of(reduced({{32, 32}, {ResizedCrop{{3, 5, 320, 256}, Interpolation::nearest}}}),
                       encoded),
            "millrace");
}

Image reduced_image(const Bytes& encoded, int reduction) {
  const auto decoder = make_image_decoder();
  EXPECT_TRUE(decoder->open(encoded).is_ok());
  const auto side = [&](int pixels) { return (pixels + reduction - 1) / reduction; };
  Image image{side(decoder->header().width), side(decoder->header().height), 3, {}};
  PixelView view;
  EXPECT_TRUE(decoder->decode_reduced({0, 0, image.width, image.height}, reduction, view).is_ok());
  for (int row = 0; row < view.height; ++row) {
    const std::uint8_t* pixels = view.pixels + static_cast<std::size_t>(row) * view.stride;
    image.pixels.insert(image.pixels.end(), pixels, pixels + 3 * view.width);
  }
  return image;
}

TEST(ReducedResolution, IsTheReducedImageResized) {
  const Image picture = noise(403, 301, 2);
  for (const testing::Encoding& encoding : testing::encodings()) {
    const Bytes encoded = encode(picture, encoding);
    for (const int reduction : {2, 4, 8}) {
      SCOPED_TRACE(encoding.name + ", 1/" + std::to_string(reduction));
      const Region box{37, 50, 331, 242};
      const Size to{40 * 8 / reduction, 30 * 8 / reduction};
      Maker maker(reduced({to, {ResizedCrop{box}}}));
      Random random(1, 1);
      ASSERT_TRUE(maker.make(encoded, 0, random).is_ok());
      ASSERT_THAT(maker.decoder_name(), ::testing::HasSubstr("1/" + std::to_string(reduction)));

      const Image whole = reduced_image(encoded, reduction);
      const Region around{box.x / reduction, box.y / reduction,
                          (box.x + box.width + reduction - 1) / reduction - box.x / reduction,
                          (box.y + box.height + reduction - 1) / reduction - box.y / reduction};
      const Image part = testing::cut(whole, around);
      const auto edge = [&](int at, int from) {
        return static_cast<float>(at) / static_cast<float>(reduction) - static_cast<float>(from);
      };
      Image expected{to.width, to.height, 3, std::vector<std::uint8_t>(maker.image().pixels)};
      resample_plainly(
          {.from = {part.width, part.height},
           .to = to,
           .window = {0, 0, to.width, to.height},
           .box = SourceBox{edge(box.x, around.x), edge(box.y, around.y),
                            edge(box.x + box.width, around.x), edge(box.y + box.height, around.y)}},
          {part.pixels.data(), part.width, part.height, static_cast<std::size_t>(part.width) * 3},
          expected.pixels.data(), static_cast<std::size_t>(to.width) * 3);
      ASSERT_EQ(maker.image().pixels, expected.pixels);
    }
  }
}

/// Returns the peak signal-to-noise ratio of two images of one size, in dB.
double psnr(const Image& a, const Image& b) {
  double sum = 0;
  for (std::size_t n = 0; n < a.pixels.size(); ++n)
    sum += std::pow(static_cast<double>(a.pixels[n]) - b.pixels[n], 2);
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(a.pixels.size()) / sum);
}

/// Returns a picture without noise, of which a lower resolution loses little.
Image smooth_picture(int width, int height) {
  Image image{width, height, 3, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int channel = 0; channel < 3; ++channel)
        image.pixels.push_back(static_cast<std::uint8_t>(128 + 60 * std::sin(0.05 * x + channel) +
                                                         50 * std::cos(0.07 * y - 0.02 * x)));
  return image;
}

TEST(ReducedResolution, LooksAsTheExactOne) {
  const Bytes encoded = encode(smooth_picture(403, 301), {.quality = 95});
  for (const bool flips : {false, true}) {
    Recipe recipe{{48, 48}, {RandomResizedCrop{}, RandomHorizontalFlip{flips ? 1.0 : 0.0}}};
    Maker exact(recipe);
    Maker fast(reduced(recipe));
    int reduced_ones = 0;
    for (std::uint64_t position = 0; position < 40; ++position) {
      Random for_exact(3, position);
      Random for_fast(3, position);
      ASSERT_TRUE(exact.make(encoded, 0, for_exact).is_ok());
      ASSERT_TRUE(fast.make(encoded, 0, for_fast).is_ok());
      if (fast.decoder_name() == "millrace") {
        EXPECT_EQ(fast.image().pixels, exact.image().pixels);
        continue;
      }
      ++reduced_ones;
      EXPECT_GT(psnr(fast.image(), exact.image()), 40) << position;
    }
    EXPECT_GT(reduced_ones, 10);
  }
}

TEST(ReducedResolution, TurnedImagesStayExact) {
  const Bytes encoded = encode(noise(400, 300, 1), {});
  const Recipe recipe = reduced({{32, 32}, {ExifTranspose{}, ResizedCrop{{0, 0, 300, 300}}}});
  EXPECT_EQ(decoder_of(recipe, encoded), "millrace (reduced to 1/8)");  // upright as it is
  for (int orientation = 2; orientation <= 8; ++orientation)
    EXPECT_EQ(decoder_of(recipe, testing::with_orientation(encoded, orientation)), "millrace");
}

}  // namespace
}  // namespace millrace
