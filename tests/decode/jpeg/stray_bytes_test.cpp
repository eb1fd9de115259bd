// SPDX-License-Identifier: Apache-2.0
//
// JPEGs with stray bytes before a restart marker or the end, as from webcams or in damaged copies.
#include <gmock/gmock.h>
#include <millrace/random.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "decode/jpeg/libjpeg_alone.h"
#include "decode/jpeg/regions.h"
#include "decode/live_pictures.h"
#include "jpeg/decoder/jpeg_decoder.h"
#include "support/jpeg_samples.h"

namespace millrace {
namespace {

using testing::any_region;
using testing::Bytes;
using testing::encode;
using testing::Encoding;
using ::testing::HasSubstr;
using testing::Image;
using testing::noise;
using testing::same_region;

constexpr int picture_width = 157;
constexpr int picture_height = 83;
constexpr Region whole_picture{0, 0, picture_width, picture_height};

Bytes stray(std::size_t count, int value) { return Bytes(count, static_cast<std::byte>(value)); }

/// Inserts bytes before the end of the image, and before each restart marker if asked.
Bytes with_stray(const Bytes& sound, const Bytes& bytes, bool before_restarts) {
  const std::size_t scan = testing::first_scan(sound);
  Bytes made;
  for (std::size_t at = 0; at < sound.size(); ++at) {
    const bool is_marker = at >= scan && at + 1 < sound.size() && sound[at] == std::byte{0xFF};
    const int marker = is_marker ? std::to_integer<int>(sound[at + 1]) : 0;
    const bool is_end = is_marker && at + 2 == sound.size();
    if (is_end || (before_restarts && (marker & ~7) == 0xD0))
      made.insert(made.end(), bytes.begin(), bytes.end());
    made.push_back(sound[at]);
  }
  return made;
}

Status checked(JpegDecoder& decoder, const Bytes& encoded) {
  Status opened = decoder.open(encoded);
  return opened.is_ok() ? decoder.check() : std::move(opened);
}

TEST(StrayBytes, BeforeTheEndAreSkippedInEachKindOfJpeg) {
  JpegDecoder decoder;
  Random random(1, 0);
  for (const Encoding& encoding : testing::encodings()) {
    SCOPED_TRACE(encoding.name);
    const Bytes sound = encode(noise(picture_width, picture_height, 3), encoding);
    const Image reference = testing::reference_decode(sound);
    ASSERT_TRUE(checked(decoder, sound).is_ok());
    ASSERT_FALSE(decoder.header().repaired);
    for (const std::size_t count : {1U, 4U, 9U, 20'000U})
      for (const int value : {0x00, 0x55}) {
        // Arithmetic decoding treats bytes other than zeros as data.
        if (value != 0 && (count > 4 || encoding.arithmetic)) continue;
        SCOPED_TRACE(std::to_string(count) + " bytes of " + std::to_string(value));
        const Bytes encoded = with_stray(sound, stray(count, value), false);
        ASSERT_EQ(checked(decoder, encoded).reason(), "");
        const std::string name = decoder.header().decoder;
        // libjpeg-turbo checks progressive images.
        const bool is_told =
            count > 8 || (name.starts_with("millrace") && name != "millrace (progressive)");
        ASSERT_TRUE(!is_told || decoder.header().repaired);
        ASSERT_EQ(decoder.header().repaired, name.ends_with("repaired)"));
        ASSERT_TRUE(same_region(decoder, encoded, reference, whole_picture));
        for (int n = 0; n < 2; ++n)
          ASSERT_TRUE(same_region(decoder, encoded, reference,
                                  any_region(random, picture_width, picture_height)));
      }
  }
}

/// An arithmetic encoder leaves out zeros at its end. So a stray byte can be data, and change the
/// last pixels. Pillow's pixels are those of libjpeg-turbo.
TEST(StrayBytes, AreDataForArithmeticDecodingAndGivePillowsPixels) {
  JpegDecoder decoder;
  Random random(3, 0);
  int equal = 0, changed = 0, bad = 0;
  for (const int interval : {0, 1, 7})
    for (const Encoding::Scans scans : {Encoding::Scans::one, Encoding::Scans::progressive})
      for (int n = 0; n < 30; ++n) {
        Encoding encoding;
        encoding.arithmetic = true;
        encoding.restart_mcus = interval;
        encoding.scans = scans;
        const Bytes sound = encode(noise(picture_width, picture_height, random()), encoding);
        const std::size_t count = 1 + random() % (n % 3 == 0 ? 12 : 4);
        Bytes bytes;
        for (std::size_t byte = 0; byte < count; ++byte)
          bytes.push_back(static_cast<std::byte>(1 + random() % 254));
        // A progressive file's scans end with other markers, which must follow at once.
        const bool everywhere = interval > 0 && scans == Encoding::Scans::one && n % 2 == 0;
        const Bytes encoded = with_stray(sound, bytes, everywhere);
        const testing::LibjpegAlone alone = testing::decode_by_libjpeg_alone(encoded);
        ASSERT_EQ(checked(decoder, encoded).reason(), alone.checked.reason());
        if (!alone.checked.is_ok()) {
          ++bad;
          ASSERT_THAT(alone.checked.reason(),
                      ::testing::AnyOf(HasSubstr("bad arithmetic code"),
                                       HasSubstr("extraneous bytes before marker")));
          continue;
        }
        Image pillows = testing::reference_decode(sound);
        ++(alone.pixels == pillows.pixels ? equal : changed);
        pillows.pixels = alone.pixels;
        ASSERT_TRUE(same_region(decoder, encoded, pillows, whole_picture));
      }
  EXPECT_GT(equal, 90);
  EXPECT_GT(changed, 20);
  EXPECT_GT(bad, 10);
}

TEST(StrayBytes, BeforeRestartMarkersAreSkippedByBothDecoders) {
  JpegDecoder decoder;
  Random random(2, 0);
  for (const int interval : {1, 3, 5, 7, 10, 13, 20, 31})
    for (const std::size_t count : {1U, 2U, 3U, 4U, 9U, 16U, 300U}) {
      SCOPED_TRACE(std::to_string(interval) + " MCUs, " + std::to_string(count) + " bytes");
      Encoding encoding;
      encoding.restart_mcus = interval;
      const Bytes sound = encode(noise(picture_width, picture_height, random()), encoding);
      const Image reference = testing::reference_decode(sound);
      const Bytes encoded =
          with_stray(sound, stray(count, count > 4 || count % 2 == 0 ? 0x00 : 0xA7), true);
      const testing::LibjpegAlone alone = testing::decode_by_libjpeg_alone(encoded);
      ASSERT_EQ(alone.checked.reason(), "");
      ASSERT_EQ(alone.pixels, reference.pixels);
      ASSERT_EQ(checked(decoder, encoded).reason(), "");
      ASSERT_STREQ(decoder.header().decoder, "millrace (repaired)");
      ASSERT_TRUE(same_region(decoder, encoded, reference, whole_picture));
      ASSERT_STREQ(decoder.header().decoder, "millrace (repaired)");
      // Also with an index that grows.
      std::vector<std::byte> index;
      for (int n = 0; n < 20; ++n) {
        const Region region = any_region(random, picture_width, picture_height);
        ASSERT_TRUE(same_region(decoder, encoded, reference, region));
        ASSERT_EQ(testing::difference_from_libjpeg(decoder, encoded, alone, region, &index), "");
      }
      ASSERT_TRUE(decoder.open(encoded).is_ok());
      decoder.use_index(index);
      ASSERT_EQ(decoder.check().reason(), "");
    }
}

TEST(StrayBytes, BeforeAnotherRestartMarkerThanTheExpectedOneAreBad) {
  JpegDecoder decoder;
  Encoding encoding;
  encoding.restart_mcus = 5;
  Bytes encoded =
      with_stray(encode(noise(picture_width, picture_height, 4), encoding), stray(2, 0x55), true);
  for (std::size_t at = testing::first_scan(encoded); at + 1 < encoded.size(); ++at)
    if (encoded[at] == std::byte{0xFF} && encoded[at + 1] == std::byte{0xD2})
      encoded[at + 1] = std::byte{0xD4};
  EXPECT_FALSE(checked(decoder, encoded).is_ok());
  EXPECT_FALSE(testing::decode_by_libjpeg_alone(encoded).checked.is_ok());
}

/// Returns bytes in a scan's form: a zero follows each FF.
Bytes any_bytes(Random& random) {
  const bool zeros = random() % 4 == 0;
  const bool filled = random() % 8 == 0;
  Bytes bytes;
  for (std::size_t count = random() % (random() % 2 == 0 ? 5 : 40); bytes.size() < count;) {
    const auto value = static_cast<std::byte>(zeros ? 0 : filled ? 255 : random() % 256);
    bytes.push_back(value);
    if (value == std::byte{0xFF}) bytes.push_back(std::byte{0});
  }
  return bytes;
}

TEST(StrayBytes, AreJudgedAsByLibjpegAlone) {
  MILLRACE_NEEDS_LIBJPEG_OF_X86();
  Random random(9, 0);
  JpegDecoder decoder;
  int sound = 0;
  int bad = 0;
  for (int n = 0; n < 1500; ++n) {
    SCOPED_TRACE(n);
    Encoding encoding;
    constexpr std::array intervals{0, 0, 0, 1, 4, 10, 20};
    encoding.restart_mcus = intervals[random() % intervals.size()];
    encoding.quality = 20 + static_cast<int>(random() % 80);
    Bytes encoded = with_stray(encode(noise(picture_width, picture_height, random()), encoding),
                               any_bytes(random), random() % 2 == 0);
    if (random() % 4 == 0) {
      const std::size_t scan = testing::first_scan(encoded);
      encoded[scan + random() % (encoded.size() - scan)] ^= std::byte{1} << random() % 8;
    }
    const testing::LibjpegAlone alone = testing::decode_by_libjpeg_alone(encoded);
    ++(alone.checked.is_ok() ? sound : bad);
    std::vector<std::byte> index;
    ASSERT_EQ(testing::difference_of_check(decoder, encoded, alone), "");
    ASSERT_EQ(testing::difference_from_libjpeg(decoder, encoded, alone, whole_picture), "");
    for (int region = 0; region < 4; ++region)
      ASSERT_EQ(
          testing::difference_from_libjpeg(
              decoder, encoded, alone, any_region(random, picture_width, picture_height), &index),
          "");
  }
  EXPECT_GT(sound, 500);
  EXPECT_GT(bad, 300);
}

TEST(StrayBytes, ThatAreManyBeforeARestartMarkerAreBad) {
  JpegDecoder decoder;
  Encoding encoding;
  encoding.restart_mcus = 10;
  const Bytes sound = encode(noise(picture_width, picture_height, 4), encoding);
  for (std::size_t at = testing::first_scan(sound), segment = 1; at + 1 < sound.size(); ++at) {
    if (sound[at] != std::byte{0xFF} || sound[at + 1] == std::byte{0}) continue;
    Bytes encoded = sound;
    // libjpeg may not report up to 8 bytes a segment.
    encoded.insert(encoded.begin() + static_cast<std::ptrdiff_t>(at), 5 + 8 * segment++,
                   std::byte{0x55});
    EXPECT_THAT(checked(decoder, encoded).reason(), HasSubstr("extraneous bytes before marker"));
  }
}

TEST(StrayBytes, InPlaceOfMissingMcusAreBad) {
  JpegDecoder decoder;
  const Bytes sound = encode(noise(picture_width, picture_height, 4), {});
  for (const std::ptrdiff_t missing : {200, 400, 1000}) {
    Bytes encoded = sound;
    encoded.erase(encoded.end() - 2 - missing, encoded.end() - 2);
    EXPECT_FALSE(checked(decoder, with_stray(encoded, stray(2, 0x00), false)).is_ok()) << missing;
  }
}

TEST(StrayBytes, BetweenScansAreBad) {
  JpegDecoder decoder;
  for (const Encoding& encoding : testing::encodings()) {
    if (encoding.name != "4:2:0, progressive") continue;
    Bytes encoded = encode(noise(picture_width, picture_height, 5), encoding);
    std::size_t at = testing::first_scan(encoded);
    while (encoded[at] != std::byte{0xFF} || encoded[at + 1] == std::byte{0}) ++at;
    encoded.insert(encoded.begin() + static_cast<std::ptrdiff_t>(at), 20, std::byte{0x55});
    EXPECT_THAT(checked(decoder, encoded).reason(), HasSubstr("extraneous bytes"));
    return;
  }
  FAIL() << "no such encoding";
}

TEST(StrayBytes, PixelsEqualPillows) {
  MILLRACE_LIVE(pictures, "stray");
  auto decoder = make_image_decoder();
  int repaired = 0;
  for (const testing::LivePicture& picture : pictures) {
    SCOPED_TRACE(picture.name);
    PixelView view;
    ASSERT_TRUE(decoder->open(picture.encoded).is_ok());
    const Status decoded = decoder->decode({0, 0, picture.size.width, picture.size.height}, view);
    ASSERT_EQ(decoded.reason(), "");
    EXPECT_EQ(testing::bytes_of(view), picture.rgb);
    repaired += decoder->header().repaired ? 1 : 0;
  }
  EXPECT_GE(repaired, 20);
}

}  // namespace
}  // namespace millrace
