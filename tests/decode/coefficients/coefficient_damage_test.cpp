// SPDX-License-Identifier: Apache-2.0
//
// Files that stay JPEGs, damaged records, and the limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/random.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "decode/coefficients/records.h"
#include "jpeg/jpeg_info.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::Encoding;
using ::testing::HasSubstr;
using testing::Recoder;

Bytes sample_jpeg(const Encoding& encoding = {}, int channels = 3) {
  return encode(testing::noise(61, 47, 1, channels), encoding);
}

std::string reason_to_stay(const Bytes& jpeg) {
  Recoder recoder;
  EXPECT_TRUE(recoder.record_of(jpeg).empty());
  return recoder.reason;
}

TEST(CoefficientRecord, FilesThatNeedOtherPixelsStayJpegs) {
  EXPECT_THAT(reason_to_stay(sample_jpeg({.name = "arithmetic", .arithmetic = true})),
              HasSubstr("arithmetic coding"));
  EXPECT_THAT(reason_to_stay(sample_jpeg({.name = "4:1:1", .h = {4, 1, 1, 1}, .v = {1, 1, 1, 1}})),
              HasSubstr("sampling factors"));
  EXPECT_THAT(reason_to_stay(sample_jpeg({.name = "RGB", .stored_as_rgb = true})),
              HasSubstr("stored as RGB"));
  EXPECT_THAT(
      reason_to_stay(sample_jpeg({.name = "CMYK", .h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}}, 4)),
      HasSubstr("four components"));
  EXPECT_THAT(reason_to_stay(sample_jpeg(
                  {.name = "incomplete", .scans = Encoding::Scans::progressive_incomplete})),
              HasSubstr("precision"));
  EXPECT_THAT(reason_to_stay(encode(testing::noise(4, 47, 1), {})), HasSubstr("narrow chroma"));
}

/// Returns the offset of the first quantisation table's steps.
std::size_t first_steps(const Bytes& jpeg) {
  for (std::size_t at = 0;; ++at)
    if (jpeg[at] == std::byte{0xFF} && jpeg[at + 1] == std::byte{0xDB}) return at + 5;
}

TEST(CoefficientRecord, FilesThatWouldNotBeRestoredStayJpegs) {
  const Bytes jpeg = sample_jpeg();
  Bytes shorter = jpeg;
  shorter.resize(jpeg.size() / 2);
  EXPECT_FALSE(reason_to_stay(shorter).empty());
  // Stray bytes before EOI, which the decoder skips.
  Bytes stray = jpeg;
  stray.insert(stray.end() - 2, 20, std::byte{0});
  EXPECT_THAT(reason_to_stay(stray), HasSubstr("not coded as libjpeg codes them"));
  // Steps as large as they can be: the coefficients are then those of no image.
  Bytes absurd = jpeg;
  std::fill_n(absurd.begin() + static_cast<std::ptrdiff_t>(first_steps(jpeg)), 64, std::byte{255});
  EXPECT_THAT(reason_to_stay(absurd), HasSubstr("no 8-bit image has"));
  EXPECT_FALSE(reason_to_stay(testing::without(jpeg, 0xDB)).empty());
  EXPECT_FALSE(reason_to_stay(testing::without(jpeg, 0xC4)).empty());
  EXPECT_FALSE(reason_to_stay({}).empty());
}

TEST(CoefficientRecord, AFileWithStrayBytesHasNoRecordOfItsPixels) {
  Recoder recoder;
  const Bytes jpeg = sample_jpeg();
  Bytes stray = jpeg;
  stray.insert(stray.end() - 2, std::byte{0});
  EXPECT_TRUE(recoder.pixel_record_of(stray).empty()) << "it would not be reported as repaired";
  EXPECT_FALSE(recoder.pixel_record_of(jpeg).empty());
}

TEST(CoefficientRecord, BytesBesideTheScansAreRestored) {
  Recoder recoder;
  Bytes jpeg = sample_jpeg();
  const std::string comment("\xff\xfe\x00\x06\xff\xda\xff\xff\xff", 9);
  const auto* const bytes = reinterpret_cast<const std::byte*>(comment.data());
  jpeg.insert(jpeg.begin() + 2, bytes, bytes + comment.size());
  const Bytes second = sample_jpeg({.name = "4:4:4", .h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}});
  jpeg.insert(jpeg.end(), second.begin(), second.end());
  const Bytes record = recoder.record_of(jpeg);
  ASSERT_FALSE(record.empty()) << recoder.reason;
  EXPECT_EQ(recoder.file_of(record), jpeg);
}

TEST(CoefficientRecord, InfoIsThatOfTheFile) {
  Recoder recoder;
  const Bytes jpeg =
      sample_jpeg({.name = "4:2:2", .v = {1, 1, 1, 1}, .restart_mcus = 3, .quality = 83});
  ImageInfo of_jpeg;
  ImageInfo of_record;
  ASSERT_TRUE(read_image_info(jpeg, of_jpeg).is_ok());
  ASSERT_TRUE(read_image_info(recoder.record_of(jpeg), of_record).is_ok());
  EXPECT_EQ(of_record.kind, ImageKind::coefficients);
  EXPECT_EQ(of_record.size(), of_jpeg.size());
  EXPECT_EQ(of_record.chroma, "4:2:2");
  EXPECT_EQ(of_record.quality, 83);
  EXPECT_EQ(of_record.restart_interval, 3);
  EXPECT_EQ(of_record.scan_type, "coefficients, baseline");
  EXPECT_STREQ(of_record.decoder, "millrace (coefficients)");
}

/// Reads a record in each way. Returns whether `check` accepts it.
bool read_in_each_way(ImageDecoder& decoder, Recoder& recoder, const Bytes& record) {
  ImageInfo info;
  (void)read_image_info(record, info);
  (void)recoder.file_of(record);
  if (!decoder.open(record).is_ok()) return false;
  const Size size = decoder.header().size();
  PixelView view;
  const Status decoded = decoder.decode({size.width / 3, 0, size.width / 2 + 1, size.height}, view);
  EXPECT_EQ(decoded.is_ok(), view.pixels != nullptr);
  decoder.close();
  return decoder.open(record).is_ok() && decoder.check().is_ok();
}

void seal_record(Bytes& record) {
  const std::uint64_t checksum = XXH3_64bits(record.data(), record.size() - 8);
  std::memcpy(record.data() + record.size() - 8, &checksum, 8);
}

TEST(CoefficientRecord, EachDamageIsFound) {
  Recoder recoder;
  const Bytes record = recoder.record_of(sample_jpeg({.name = "4:2:0", .quality = 60}));
  ASSERT_FALSE(record.empty()) << recoder.reason;
  const auto decoder = make_image_decoder();
  Random random(5, 0);
  for (std::size_t at = 0; at < record.size(); at += at < 400 ? 1 : 7) {
    Bytes damaged = record;
    damaged[at] ^= static_cast<std::byte>(1U << random() % 8);
    EXPECT_FALSE(read_in_each_way(*decoder, recoder, damaged)) << at;
    EXPECT_TRUE(recoder.file_of(damaged).empty()) << at;
  }
  for (std::size_t bytes = 0; bytes < record.size(); bytes += bytes < 400 ? 1 : 13) {
    const Bytes shorter(record.begin(), record.begin() + static_cast<std::ptrdiff_t>(bytes));
    EXPECT_FALSE(read_in_each_way(*decoder, recoder, shorter)) << bytes;
  }
}

TEST(CoefficientRecord, ForgedOffsetsAndLengthsAreRefusedOrHarmless) {
  Recoder recoder;
  const Bytes record = recoder.record_of(sample_jpeg({.name = "4:2:0", .quality = 60}));
  ASSERT_FALSE(record.empty()) << recoder.reason;
  const auto decoder = make_image_decoder();
  Random random(6, 0);
  int refused = 0;
  constexpr int forged = 3000;
  for (int n = 0; n < forged; ++n) {
    Bytes damaged = record;
    for (unsigned left = 1 + static_cast<unsigned>(n) % 3; left > 0; --left) {
      const std::size_t at = 8 + random() % (n % 2 == 0 ? 400 : record.size() - 16);
      damaged[at] = static_cast<std::byte>(random());
    }
    seal_record(damaged);
    refused += read_in_each_way(*decoder, recoder, damaged) ? 0 : 1;
  }
  EXPECT_GT(refused, forged / 4);
}

TEST(CoefficientRecord, UnknownVersionIsNamed) {
  Recoder recoder;
  Bytes record = recoder.record_of(sample_jpeg());
  record[8] = std::byte{2};
  const auto decoder = make_image_decoder();
  EXPECT_EQ(decoder->open(record).reason(),
            "coefficients of version 2; this millrace reads version 1");
}

TEST(CoefficientRecord, LimitsAreThoseOfImages) {
  Recoder recoder;
  const Bytes jpeg = sample_jpeg();
  const Bytes record = recoder.record_of(jpeg);
  const auto reason = [&](const DecodeLimits& limits) {
    return make_image_decoder(std::make_shared<DecodeBudget>(limits))->open(record).reason();
  };
  EXPECT_EQ(reason({}), "");
  EXPECT_THAT(reason({.max_pixels = 2000}), HasSubstr("max_pixels"));
  const Bytes blank = encode({800, 800, 1, std::vector<std::uint8_t>(800 * 800, 90)}, {});
  const Bytes record_of_blank = recoder.record_of(blank);
  ASSERT_FALSE(record_of_blank.empty()) << recoder.reason;
  const auto strict =
      make_image_decoder(std::make_shared<DecodeBudget>(DecodeLimits{.max_pixels_per_byte = 20}));
  EXPECT_THAT(strict->open(record_of_blank).reason(), HasSubstr("max_pixels_per_byte"));
  JpegRecoder small(std::make_shared<DecodeBudget>(DecodeLimits{.max_pixels = 2000}));
  Bytes made;
  EXPECT_THAT(small.store(jpeg, made).reason(), HasSubstr("max_pixels"));
  EXPECT_THAT(small.restore(record, made).reason(), HasSubstr("max_pixels"));
}

TEST(CoefficientRecord, CallsHaveTheirOrder) {
  Recoder recoder;
  const Bytes record = recoder.record_of(sample_jpeg());
  const auto decoder = make_image_decoder();
  ASSERT_TRUE(decoder->open(record).is_ok());
  EXPECT_FALSE(decoder->use_index({}));
  EXPECT_EQ(decoder->interleaved(), nullptr);
  PixelView view;
  EXPECT_THROW((void)decoder->decode({0, 0, 62, 1}, view), Error);
  ASSERT_TRUE(decoder->open(record).is_ok());
  EXPECT_TRUE(decoder->decode({60, 46, 1, 1}, view).is_ok());
  EXPECT_THROW((void)decoder->decode({0, 0, 1, 1}, view), Error);
  EXPECT_THROW((void)decoder->check(), Error);
}

}  // namespace
}  // namespace millrace
