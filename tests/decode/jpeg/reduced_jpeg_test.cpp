// SPDX-License-Identifier: Apache-2.0
//
// JPEGs decoded at a lower resolution, by the stages and by libjpeg-turbo.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "decode/jpeg/regions.h"

namespace millrace {
namespace {

using testing::any_region;
using testing::Bytes;
using testing::encode;
using testing::Encoding;
using testing::Image;
using testing::noise;
using testing::reference_decode;
using testing::same_region;

/// Returns a reduced image by the decoder.
Image decode_reduced(JpegDecoder& decoder, const Bytes& encoded, int reduction) {
  EXPECT_TRUE(decoder.open(encoded).is_ok());
  const auto reduced = [&](int side) { return (side + reduction - 1) / reduction; };
  Image image{reduced(decoder.header().width), reduced(decoder.header().height), 3, {}};
  PixelView view;
  EXPECT_TRUE(decoder.decode_reduced({0, 0, image.width, image.height}, reduction, view).is_ok());
  for (int row = 0; row < view.height; ++row) {
    const std::uint8_t* pixels = view.pixels + static_cast<std::size_t>(row) * view.stride;
    image.pixels.insert(image.pixels.end(), pixels, pixels + 3 * view.width);
  }
  return image;
}

TEST(ReducedJpeg, RegionsEqualTheWhole) {
  JpegDecoder decoder;
  Random random(12, 0);
  int by_stages = 0;
  for (const Encoding& encoding : testing::encodings())
    for (const auto& [width, height] : {std::pair(131, 117), std::pair(96, 64), std::pair(33, 50)})
      for (const int reduction : {2, 4, 8}) {
        SCOPED_TRACE(encoding.name + ", 1/" + std::to_string(reduction));
        const Bytes encoded = encode(noise(width, height, random()), encoding);
        Image whole = decode_reduced(decoder, encoded, reduction);
        const std::string name = decoder.header().decoder;
        ASSERT_THAT(name, ::testing::EndsWith(" (reduced to 1/" + std::to_string(reduction) + ")"));
        if (name.starts_with("millrace"))
          ++by_stages;
        else
          ASSERT_EQ(whole.pixels, reference_decode(encoded, reduction).pixels);
        for (int n = 0; n < 8; ++n)
          ASSERT_TRUE(same_region(decoder, encoded, whole,
                                  any_region(random, whole.width, whole.height), reduction));
      }
  EXPECT_GE(by_stages, 9 * 9);
}

// libjpeg-turbo would leave columns of such a crop as they were in memory.
TEST(ReducedJpeg, RegionsShowNoEarlierImageForAnySamplingFactors) {
  JpegDecoder decoder;
  Random random(17, 0);
  Image white{160, 140, 3, {}};
  white.pixels.assign(std::size_t{3} * 160 * 140, 255);
  const Bytes poison = encode(white, {.h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}});
  const Image poisoned = reference_decode(poison);
  for (const int across : {1, 2, 4})
    for (const int down : {1, 2, 4})
      for (const int finer : {1, 2}) {
        // At most 10 blocks in an MCU, in all; `finer` is the factor of one component of colour.
        if (across * down + finer + 1 > 10 || finer > down) continue;
        const Encoding encoding{.h = {across, 1, 1, 1}, .v = {down, finer, 1, 1}};
        const Bytes encoded = encode(noise(131, 117, random()), encoding);
        for (const int reduction : {2, 4, 8}) {
          SCOPED_TRACE(std::to_string(across) + "x" + std::to_string(down) + ", 1x" +
                       std::to_string(finer) + ", 1/" + std::to_string(reduction));
          const Image whole = decode_reduced(decoder, encoded, reduction);
          for (int n = 0; n < 8; ++n) {
            ASSERT_TRUE(same_region(decoder, poison, poisoned, {0, 0, 160, 140}));
            ASSERT_TRUE(same_region(decoder, encoded, whole,
                                    any_region(random, whole.width, whole.height), reduction));
          }
        }
      }
}

TEST(ReducedJpeg, OfTheStagesLooksAsLibjpegTurbos) {
  JpegDecoder decoder;
  Image picture{203, 150, 3, {}};
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x)
      for (int channel = 0; channel < 3; ++channel)
        picture.pixels.push_back(static_cast<std::uint8_t>(128 + 60 * std::sin(0.05 * x + channel) +
                                                           50 * std::cos(0.07 * y - 0.02 * x)));
  for (const Encoding& encoding : testing::encodings())
    for (const int reduction : {2, 4, 8}) {
      SCOPED_TRACE(encoding.name + ", 1/" + std::to_string(reduction));
      const Bytes encoded = encode(picture, encoding);
      const Image ours = decode_reduced(decoder, encoded, reduction);
      const Image theirs = reference_decode(encoded, reduction);
      ASSERT_EQ(ours.pixels.size(), theirs.pixels.size());
      double sum = 0;
      for (std::size_t n = 0; n < ours.pixels.size(); ++n)
        sum += std::pow(static_cast<double>(ours.pixels[n]) - theirs.pixels[n], 2);
      // A mean difference of two levels; of six at 1/8, where libjpeg-turbo does not smooth chroma.
      EXPECT_LT(sum / static_cast<double>(ours.pixels.size()), reduction == 8 ? 36 : 4);
    }
}

TEST(ReducedJpeg, IsLibjpegTurbosWhereDataIsDamaged) {
  JpegDecoder decoder;
  Bytes cut = encode(noise(64, 64, 2), {});
  cut.resize(cut.size() * 2 / 3);
  PixelView view;
  ASSERT_TRUE(decoder.open(cut).is_ok());
  EXPECT_FALSE(decoder.decode_reduced({0, 0, 32, 32}, 2, view).is_ok());
  EXPECT_STREQ(decoder.header().decoder, "libjpeg-turbo (reduced to 1/2)");
}

TEST(ReducedJpeg, IsByPowersOfTwoAlone) {
  JpegDecoder decoder;
  PixelView view;
  const Bytes encoded = encode(noise(40, 30, 1), {});
  for (const int reduction : {0, 1, 3, 16}) {
    ASSERT_TRUE(decoder.open(encoded).is_ok());
    EXPECT_THROW((void)decoder.decode_reduced({0, 0, 1, 1}, reduction, view), Error);
  }
  ASSERT_TRUE(decoder.open(encoded).is_ok());
  EXPECT_THROW((void)decoder.decode_reduced({0, 0, 21, 15}, 2, view), Error);
  EXPECT_TRUE(same_region(decoder, encoded, reference_decode(encoded), {0, 0, 40, 30}));
  EXPECT_STREQ(decoder.header().decoder, "millrace");
}

}  // namespace
}  // namespace millrace
