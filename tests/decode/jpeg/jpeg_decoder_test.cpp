// SPDX-License-Identifier: Apache-2.0
#include "jpeg/decoder/jpeg_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/random.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "decode/jpeg/regions.h"
#include "support/jpeg_samples.h"
#include "support/sanitizers.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::any_region;
using testing::Bytes;
using testing::encode;
using testing::Encoding;
using ::testing::HasSubstr;
using testing::Image;
using testing::noise;
using testing::reference_decode;
using testing::same_region;
using ::testing::StartsWith;

std::string why_not(JpegDecoder& decoder, const Bytes& encoded) {
  return decoder.open(encoded).reason();
}

void expect_all_regions_same(JpegDecoder& decoder, const Bytes& encoded, Random& random,
                             int regions) {
  const Image reference = reference_decode(encoded);
  ASSERT_TRUE(same_region(decoder, encoded, reference, {0, 0, reference.width, reference.height}));
  for (int n = 0; n < regions; ++n)
    ASSERT_TRUE(same_region(decoder, encoded, reference,
                            any_region(random, reference.width, reference.height)));
}

TEST(JpegDecoder, RegionsOfEveryEncodingEqualTheWhole) {
  JpegDecoder decoder;
  Random random(1, 0);
  constexpr std::pair<int, int> sizes[] = {{131, 117}, {96, 64}, {33, 50}, {5, 7},
                                           {3, 40},    {40, 3},  {2, 2},   {1, 1}};
  for (const Encoding& encoding : testing::encodings()) {
    for (const auto& [width, height] : sizes) {
      SCOPED_TRACE(encoding.name);
      expect_all_regions_same(decoder, encode(noise(width, height, random()), encoding), random,
                              24);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(JpegDecoder, EverySinglePixelAndStripEqualsTheWhole) {
  JpegDecoder decoder;
  for (const Encoding& encoding : testing::encodings()) {
    if (encoding.restart_rows > 0 || encoding.arithmetic) continue;
    SCOPED_TRACE(encoding.name);
    const Bytes encoded = encode(noise(67, 53, 5), encoding);
    const Image whole = reference_decode(encoded);
    for (int x = 0; x < whole.width; ++x) {
      ASSERT_TRUE(same_region(decoder, encoded, whole, {x, 0, 1, whole.height}));
      ASSERT_TRUE(same_region(decoder, encoded, whole, {x, x * 11 % whole.height, 1, 1}));
    }
    for (int y = 0; y < whole.height; ++y)
      ASSERT_TRUE(same_region(decoder, encoded, whole, {0, y, whole.width, 1}));
  }
}

TEST(JpegDecoder, RegionsOfPhotographsEqualTheWhole) {
  MILLRACE_NEEDS_SHARED("data");
  JpegDecoder decoder;
  Random random(2, 0);
  int seen = 0;
  int compared = 0;
  for (const char* folder : {"data/sizes", "data/exif", "data/odd", "data/photos"}) {
    for (const auto& path : testing::jpeg_files(testing::shared_dir() / folder)) {
      if (path.filename() == "monkey12.jpg") continue;  // 12 bits
      if (folder == std::string_view("data/photos") && seen++ % testing::one_in != 0) continue;
      SCOPED_TRACE(path.string());
      const Bytes encoded = testing::read_file(path);
      expect_all_regions_same(decoder, encoded, random, 5);
      if (HasFatalFailure()) return;
      ASSERT_TRUE(decoder.open(encoded).is_ok());
      EXPECT_TRUE(decoder.check().is_ok());
      ++compared;
    }
  }
  EXPECT_GE(compared, 500 / testing::one_in);
}

TEST(JpegDecoder, HeaderSaysWhatIsStored) {
  JpegDecoder decoder;
  ASSERT_TRUE(
      decoder.open(encode(noise(31, 17, 1), {.scans = Encoding::Scans::progressive})).is_ok());
  EXPECT_EQ(decoder.header().width, 31);
  EXPECT_EQ(decoder.header().height, 17);
  EXPECT_EQ(decoder.header().components, 3);
  EXPECT_TRUE(decoder.header().progressive);
  EXPECT_FALSE(decoder.header().arithmetic);
  ASSERT_TRUE(decoder.open(encode(noise(8, 9, 1, 1), {.arithmetic = true})).is_ok());
  EXPECT_EQ(decoder.header().components, 1);
  EXPECT_FALSE(decoder.header().progressive);
  EXPECT_TRUE(decoder.header().arithmetic);
}

TEST(JpegDecoder, GreyBecomesRgb) {
  JpegDecoder decoder;
  Random random(3, 0);
  for (const int factor : {1, 2})  // the sampling factors of a single component have no effect
    expect_all_regions_same(
        decoder, encode(noise(61, 45, 2, 1), {.h = {factor, 1, 1, 1}, .v = {factor, 1, 1, 1}}),
        random, 60);
}

TEST(JpegDecoder, CmykBecomesRgbAsPillowConverts) {
  JpegDecoder decoder;
  Random random(4, 0);
  for (const bool ycck : {false, true}) {
    for (const int factor : {1, 2}) {
      const Bytes encoded = encode(
          noise(70, 52, 3, 4),
          {.h = {factor, 1, 1, factor}, .v = {factor, 1, 1, factor}, .stored_as_ycck = ycck});
      const Image cmyk = reference_decode(encoded);
      ASSERT_EQ(cmyk.channels, 4);
      Image rgb{cmyk.width, cmyk.height, 3, {}};
      for (std::size_t pixel = 0; pixel < cmyk.pixels.size(); pixel += 4) {
        // Adobe stores 255 minus the ink. RGB is the white that ink and black leave, each product
        // rounded to the nearest.
        const double white = cmyk.pixels[pixel + 3];
        for (std::size_t channel = 0; channel < 3; ++channel) {
          const double ink = 255.0 - cmyk.pixels[pixel + channel];
          rgb.pixels.push_back(
              static_cast<std::uint8_t>(white - std::floor(ink * white / 255.0 + 0.5)));
        }
      }
      for (int n = 0; n < 40; ++n)
        ASSERT_TRUE(same_region(decoder, encoded, rgb, any_region(random, rgb.width, rgb.height)));
    }
  }
}

TEST(JpegDecoder, SaysWhatItCannotDecode) {
  JpegDecoder decoder;
  Bytes lossless = encode(noise(16, 16, 1), {});
  const std::array baseline{std::byte{0xff}, std::byte{0xc0}};
  auto frame = std::search(lossless.begin(), lossless.end(), baseline.begin(), baseline.end());
  ASSERT_NE(frame, lossless.end());
  Bytes twelve_bits = lossless;
  twelve_bits[static_cast<std::size_t>(frame - lossless.begin()) + 4] = std::byte{12};
  frame[1] = std::byte{0xc3};
  EXPECT_THAT(why_not(decoder, lossless),
              StartsWith("a lossless or hierarchical JPEG (SOF type 0xc3)"));
  EXPECT_EQ(why_not(decoder, twelve_bits), "a 12-bit JPEG; only 8-bit is supported");
}

TEST(JpegDecoder, RefusesDecompressionBombs) {
  JpegDecoder decoder;
  Bytes huge = encode(noise(16, 16, 1), {});
  const std::array baseline{std::byte{0xff}, std::byte{0xc0}};
  const auto frame = std::search(huge.begin(), huge.end(), baseline.begin(), baseline.end());
  ASSERT_NE(frame, huge.end());
  std::fill(frame + 5, frame + 9, std::byte{0x7f});
  EXPECT_EQ(why_not(decoder, huge),
            "32639 x 32639 pixels; at most 100000000 are decoded (max_pixels)");

  const Encoding many{.name = "a scan per bit", .scans = Encoding::Scans::per_coefficient};
  const Bytes encoded = encode(noise(16, 16, 1), many);
  PixelView view;
  ASSERT_TRUE(decoder.open(encoded).is_ok());
  EXPECT_EQ(decoder.decode({0, 0, 16, 16}, view).reason(), "more than 200 scans");
  ASSERT_TRUE(decoder.open(encoded).is_ok());
  EXPECT_EQ(decoder.check().reason(), "more than 200 scans");
}

TEST(JpegDecoder, DamageIsBadAsFarAsItWasRead) {
  JpegDecoder decoder;
  for (const Encoding& encoding : testing::encodings()) {
    SCOPED_TRACE(encoding.name);
    Bytes cut = encode(noise(160, 160, 6), encoding);
    cut.resize(cut.size() * 2 / 3);
    ASSERT_TRUE(decoder.open(cut).is_ok());
    PixelView view;
    const Status whole = decoder.decode({0, 0, 160, 160}, view);
    EXPECT_EQ(view.pixels, nullptr);
    EXPECT_THAT(whole.reason(), HasSubstr("remature end of"));
    ASSERT_TRUE(decoder.open(cut).is_ok());
    EXPECT_EQ(decoder.check().reason(), whole.reason());
    if (encoding.scans != Encoding::Scans::one) continue;
    ASSERT_TRUE(decoder.open(cut).is_ok());
    EXPECT_TRUE(decoder.decode({40, 20, 80, 30}, view).is_ok());
  }
  // The handle still decodes after all that.
  const Bytes sound = encode(noise(40, 30, 7), {});
  EXPECT_TRUE(same_region(decoder, sound, reference_decode(sound), {3, 4, 20, 20}));
}

TEST(JpegDecoder, LostRestartMarkerIsBadAndBytesBetweenMarkersAreNot) {
  JpegDecoder decoder;
  const Bytes encoded = encode(noise(64, 64, 8), {.restart_rows = 1});
  Bytes swapped = encoded;
  const std::array marker{std::byte{0xff}, std::byte{0xd1}};
  const auto second = std::search(swapped.begin(), swapped.end(), marker.begin(), marker.end());
  ASSERT_NE(second, swapped.end());
  second[1] = std::byte{0xd5};
  ASSERT_TRUE(decoder.open(swapped).is_ok());
  EXPECT_THAT(decoder.check().reason(), HasSubstr("instead of RST1"));

  Bytes padded = encoded;
  padded.insert(padded.begin() + 2, 9, std::byte{0});
  EXPECT_TRUE(same_region(decoder, padded, reference_decode(encoded), {5, 5, 30, 30}));
}

TEST(JpegDecoder, MisuseThrows) {
  JpegDecoder decoder;
  PixelView view;
  EXPECT_THROW((void)decoder.decode({0, 0, 1, 1}, view), Error);
  EXPECT_THROW((void)decoder.check(), Error);
  const Bytes encoded = encode(noise(20, 10, 1), {});
  constexpr int huge = std::numeric_limits<int>::max();
  for (const Region& region : {Region{0, 0, 0, 5}, Region{0, 0, 5, 0}, Region{-1, 0, 5, 5},
                               Region{0, -1, 5, 5}, Region{16, 0, 5, 5}, Region{0, 6, 5, 5},
                               Region{huge, 0, huge, 1}, Region{0, huge, 1, huge}}) {
    ASSERT_TRUE(decoder.open(encoded).is_ok());
    EXPECT_THROW((void)decoder.decode(region, view), Error);
  }
  ASSERT_TRUE(decoder.open(encoded).is_ok());
  ASSERT_TRUE(decoder.decode({0, 0, 20, 10}, view).is_ok());
  EXPECT_THROW((void)decoder.decode({0, 0, 20, 10}, view), Error);
}

TEST(JpegDecoder, MayBeMoved) {
  const Bytes encoded = encode(noise(20, 10, 1), {});
  JpegDecoder first;
  ASSERT_TRUE(first.open(encoded).is_ok());
  JpegDecoder second = std::move(first);
  PixelView view;
  EXPECT_TRUE(second.decode({2, 2, 10, 5}, view).is_ok());
  EXPECT_EQ(view.width, 10);
}

/// Decodes a random region and checks the whole. Both must return.
void feed(JpegDecoder& decoder, const Bytes& encoded, Random& random) {
  if (!decoder.open(encoded).is_ok()) return;
  PixelView view;
  const Status status =
      decoder.decode(any_region(random, decoder.header().width, decoder.header().height), view);
  std::uint64_t sum = 0;
  for (int row = 0; status.is_ok() && row < view.height; ++row)
    for (int byte = 0; byte < 3 * view.width; ++byte)
      sum +=
          view.pixels[static_cast<std::size_t>(row) * view.stride + static_cast<std::size_t>(byte)];
  EXPECT_LE(sum, std::uint64_t{255} * 3 * DecodeLimits().max_pixels);
  if (decoder.open(encoded).is_ok()) (void)decoder.check().is_ok();
  if (decoder.open(encoded).is_ok())
    (void)decoder.decode_reduced({0, 0, 1, 1}, 2 << random() % 3, view).is_ok();
}

TEST(JpegDecoder, SurvivesRandomDamage) {
  JpegDecoder decoder;
  Random random(9, 0);
  const std::vector<Encoding> kinds = testing::encodings();
  const Image image = noise(90, 70, 10);
  for (int n = 0; n < 1000; ++n) {
    Bytes encoded = encode(image, kinds[random() % kinds.size()]);
    // Half of the changes are in the headers, where a byte changes sizes, tables and samplings.
    const std::size_t reach =
        n % 2 == 0 ? encoded.size() : std::min<std::size_t>(encoded.size(), 700);
    for (unsigned changes = 1 + random() % 8; changes > 0; --changes)
      encoded[random() % reach] = static_cast<std::byte>(random());
    if (n % 5 == 0) encoded.resize(1 + random() % encoded.size());
    feed(decoder, encoded, random);
  }
}

TEST(JpegDecoder, SurvivesDamagedPhotographs) {
  MILLRACE_NEEDS_SHARED("data/photos");
  JpegDecoder decoder;
  Random random(11, 0);
  for (const auto& path : testing::jpeg_files(testing::shared_dir() / "data/photos")) {
    Bytes encoded = testing::read_file(path);
    for (unsigned changes = 1 + random() % 20; changes > 0; --changes)
      encoded[random() % (random() % 2 == 0 ? encoded.size() : 800)] =
          static_cast<std::byte>(random());
    feed(decoder, encoded, random);
  }
}

}  // namespace
}  // namespace millrace
