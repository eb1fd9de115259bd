// SPDX-License-Identifier: Apache-2.0
#include "jpeg/jpeg_info.h"

#include <gmock/gmock.h>
#include <millrace/random.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "jpeg/decoder/jpeg_decoder.h"
#include "support/jpeg_samples.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::encode;
using testing::Encoding;
using ::testing::HasSubstr;
using testing::noise;
using Scans = Encoding::Scans;

JpegInfo info_of(const Bytes& encoded) {
  JpegInfo info;
  const Status status = read_jpeg_info(encoded, info);
  EXPECT_TRUE(status.is_ok()) << status.reason();
  return info;
}

std::string why_bad(const Bytes& encoded) {
  JpegInfo info;
  return read_jpeg_info(encoded, info).reason();
}

Bytes operator+(Bytes bytes, std::string_view more) {
  for (const char c : more) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

/// Returns a small image with a segment after its beginning.
Bytes with_segment(unsigned char marker, std::string_view contents) {
  const Bytes image = encode(noise(8, 8, 1), {});
  Bytes bytes(image.begin(), image.begin() + 2);
  bytes = bytes + std::string{'\xff', static_cast<char>(marker),
                              static_cast<char>((contents.size() + 2) >> 8),
                              static_cast<char>((contents.size() + 2) & 255)};
  bytes = bytes + contents;
  bytes.insert(bytes.end(), image.begin() + 2, image.end());
  return bytes;
}

TEST(JpegInfo, TellsTheQualityThatLibjpegWasGiven) {
  for (int quality = 1; quality <= 100; ++quality) {
    Encoding encoding;
    encoding.quality = quality;
    EXPECT_EQ(info_of(encode(noise(16, 16, 1), encoding)).quality, quality);
    EXPECT_EQ(info_of(encode(noise(16, 16, 1, 1),
                             {.h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}, .quality = quality}))
                  .quality,
              quality);
  }
}

TEST(JpegInfo, HasNoQualityForOtherTables) {
  const Bytes sound = encode(noise(8, 8, 1), {});
  const Bytes marker{std::byte{0xff}, std::byte{0xdb}};
  const auto table =
      std::search(sound.begin(), sound.end(), marker.begin(), marker.end()) - sound.begin() + 5;
  for (const int difference : {1, 2, 40}) {
    Bytes other = sound;
    auto& step = other[static_cast<std::size_t>(table) + 20];
    step = static_cast<std::byte>(std::to_integer<int>(step) + difference);
    EXPECT_EQ(info_of(other).quality, difference == 1 ? std::optional(90) : std::nullopt)
        << "an encoder may round otherwise";
  }
}

TEST(JpegInfo, TellsSamplingProcessAndRestarts) {
  for (const Encoding& encoding : testing::encodings()) {
    SCOPED_TRACE(encoding.name);
    const Bytes encoded = encode(noise(67, 53, 3), encoding);
    const JpegInfo info = info_of(encoded);
    EXPECT_EQ(info.width, 67);
    EXPECT_EQ(info.height, 53);
    EXPECT_EQ(info.components, 3);
    EXPECT_EQ(info.bits_per_sample, 8);
    EXPECT_EQ(info.arithmetic, encoding.arithmetic);
    const bool progressive =
        encoding.scans == Scans::progressive || encoding.scans == Scans::progressive_incomplete;
    if (progressive) {
      EXPECT_EQ(info.process, JpegInfo::Process::progressive);
    } else {
      EXPECT_THAT(info.process,
                  ::testing::AnyOf(JpegInfo::Process::baseline, JpegInfo::Process::extended));
    }
    EXPECT_EQ(info.restart_interval > 0, encoding.restart_rows > 0);
    EXPECT_EQ(info.orientation, std::nullopt);
    EXPECT_GT(info.header_bytes, 100u);
    EXPECT_LT(info.header_bytes, encoded.size());
    const std::string sampling = encoding.name.substr(0, encoding.name.find(','));
    if (sampling.find(':') != std::string::npos) {
      EXPECT_EQ(info.chroma, sampling);
    }
  }
  EXPECT_EQ(info_of(encode(noise(9, 9, 1), {.h = {1, 1, 1, 1}, .v = {4, 1, 1, 1}})).chroma,
            "1x4 1x1 1x1");
  EXPECT_EQ(info_of(encode(noise(9, 9, 1), {.h = {2, 1, 2, 1}, .v = {2, 2, 1, 1}})).chroma,
            "2x2 1x2 2x1");
  EXPECT_EQ(info_of(encode(noise(9, 9, 1), {.h = {1, 2, 2, 1}, .v = {1, 2, 1, 1}})).chroma,
            "1x1 2x2 2x1");
  EXPECT_EQ(info_of(encode(noise(9, 9, 1, 1), {.h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}})).chroma,
            "gray");
  EXPECT_EQ(info_of(encode(noise(9, 9, 1, 4),
                           {.h = {2, 1, 1, 2}, .v = {2, 1, 1, 2}, .stored_as_ycck = true}))
                .chroma,
            "4:2:0");
}

TEST(JpegInfo, AgreesWithTheDecoder) {
  MILLRACE_NEEDS_SHARED("data");
  JpegDecoder decoder;
  int compared = 0;
  for (const char* folder : {"data/photos", "data/sizes", "data/exif", "data/odd"})
    for (const auto& path : testing::jpeg_files(testing::shared_dir() / folder)) {
      SCOPED_TRACE(path.string());
      const Bytes encoded = testing::read_file(path);
      const JpegInfo info = info_of(encoded);
      const std::string name = path.filename().string();
      if (name == "monkey12.jpg") {
        EXPECT_EQ(info.bits_per_sample, 12);
        EXPECT_EQ(info.process, JpegInfo::Process::extended);
        continue;
      }
      ASSERT_TRUE(decoder.open(encoded).is_ok());
      EXPECT_EQ(info.width, decoder.header().width);
      EXPECT_EQ(info.height, decoder.header().height);
      EXPECT_EQ(info.components, decoder.header().components);
      EXPECT_EQ(info.process == JpegInfo::Process::progressive, decoder.header().progressive);
      EXPECT_EQ(info.arithmetic, decoder.header().arithmetic);
      ++compared;
      if (std::string_view(folder) != "data/sizes") continue;
      EXPECT_EQ(info.chroma == "4:4:4",
                name.find("_444") != std::string::npos && info.components == 3);
      EXPECT_EQ(info.chroma == "4:2:2", name.find("_422") != std::string::npos);
      EXPECT_EQ(info.chroma == "gray", name.find("_gray") != std::string::npos);
      EXPECT_EQ(info.process == JpegInfo::Process::progressive,
                name.find("_progressive") != std::string::npos);
      EXPECT_EQ(info.restart_interval > 0, name.find("_restart") != std::string::npos);
    }
  EXPECT_GT(compared, 500);
}

TEST(JpegInfo, ReadsTheOrientationOfExif) {
  MILLRACE_NEEDS_SHARED("data/exif");
  for (const char* scene : {"Landscape_", "Portrait_"})
    for (int orientation = 0; orientation <= 8; ++orientation) {
      const auto path =
          testing::shared_dir() / "data/exif" / (scene + std::to_string(orientation) + ".jpg");
      const std::optional<int> expected =
          orientation == 0 ? std::nullopt : std::optional(orientation);
      EXPECT_EQ(info_of(testing::read_file(path)).orientation, expected) << path;
    }
}

TEST(JpegInfo, TakesAnOrientationInEitherByteOrderAndNothingElse) {
  using namespace std::string_view_literals;
  const auto orientation = [](std::string_view exif) {
    return info_of(with_segment(0xE1, exif)).orientation;
  };
  EXPECT_EQ(orientation("Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"sv), 6);
  EXPECT_EQ(orientation("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0"sv), 8);
  // Pillow 11 to 13 find it. Pillow 10 and older find nothing after a second name.
  EXPECT_EQ(
      orientation("Exif\0\0Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"sv), 6);
  // Integers of other types.
  EXPECT_EQ(orientation("Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x04\0\x01\0\0\0\x06\0\0\0"sv), 6);
  EXPECT_EQ(orientation("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x04\0\0\0\x01\0\0\0\x03"sv), 3);
  EXPECT_EQ(orientation("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x08\0\0\0\x01\0\x07\0\0"sv), 7);
  EXPECT_EQ(orientation("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x09\0\0\0\x01\0\0\0\x05"sv), 5);
  EXPECT_EQ(orientation("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x04\0\0\0\x01\0\x03\0\0"sv),
            std::nullopt);
  EXPECT_EQ(orientation("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x09\0\0"sv),
            std::nullopt)
      << "no such value";
  EXPECT_EQ(orientation("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x02\0\0\0\x01\0\x08\0\0"sv),
            std::nullopt)
      << "text";
  EXPECT_EQ(orientation("Exif\0\0MM\0*\xff\xff\xff\xff\0\x01"sv), std::nullopt)
      << "a directory elsewhere";
  EXPECT_EQ(orientation("Exif\0\0MM\0*\0\0\0\x08\xff\xff\0\0"sv), std::nullopt)
      << "a directory that is cut short";
  EXPECT_EQ(orientation("Exif\0\0XX\0*\0\0\0\x08"sv), std::nullopt);
  EXPECT_EQ(orientation("Exif"sv), std::nullopt);
  EXPECT_EQ(orientation("http://ns.adobe.com/xap/1.0/"sv), std::nullopt);
}

TEST(JpegInfo, PassesOverShortLengthsWhereLibjpegDoes) {
  const Bytes image = encode(noise(8, 8, 1), {});
  JpegDecoder decoder;
  for (const int marker : {0xE0, 0xE1, 0xE5, 0xEE, 0xEF, 0xFE, 0xDC, 0xDB, 0xC4, 0xDD})
    for (const int length : {0, 1}) {
      Bytes bytes = image;
      const Bytes segment{std::byte{0xFF}, static_cast<std::byte>(marker), std::byte{0},
                          static_cast<std::byte>(length)};
      bytes.insert(bytes.begin() + 2, segment.begin(), segment.end());
      JpegInfo info;
      EXPECT_EQ(read_jpeg_info(bytes, info).is_ok(), decoder.open(bytes).is_ok())
          << "marker " << marker << ", length " << length;
      if (marker != 0xE1 || length != 0) continue;
      // Pillow also finds the orientation that follows.
      using namespace std::string_view_literals;
      const auto exif =
          with_segment(0xE1, "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"sv);
      Bytes behind(bytes.begin(), bytes.begin() + 6);
      behind.insert(behind.end(), exif.begin() + 2, exif.end());
      EXPECT_EQ(info_of(behind).orientation, 6);
    }
}

TEST(JpegInfo, SaysWhatIsWrong) {
  EXPECT_THAT(why_bad({}), HasSubstr("ends before its first scan"));
  EXPECT_THAT(why_bad(Bytes{} + "\xff\xd8"), HasSubstr("ends before its first scan"));
  EXPECT_THAT(why_bad(Bytes{} + "\xff\xd8\xff\xd9"), HasSubstr("no scan"));
  EXPECT_THAT(why_bad(with_segment(0xDB, "\x07")), HasSubstr("table number 7"));
  EXPECT_THAT(why_bad(with_segment(0xC0, "\x08")), HasSubstr("frame header is cut short"));
  // Many bytes that look like markers but are not.
  Bytes stuffed = Bytes{} + "\xff\xd8";
  for (int n = 0; n < 1'000'000; ++n) stuffed = std::move(stuffed) + std::string_view("\xff\0", 2);
  EXPECT_THAT(why_bad(stuffed), HasSubstr("ends before its first scan"));
}

/// Reads a copy of exactly the size, so that the address sanitizer sees a read beyond it.
Status read_exactly(std::span<const std::byte> encoded, JpegInfo& info) {
  const auto bytes = std::make_unique<std::byte[]>(encoded.size());
  std::ranges::copy(encoded, bytes.get());
  return read_jpeg_info({bytes.get(), encoded.size()}, info);
}

TEST(JpegInfo, NeedsNothingBehindItsHeader) {
  const Bytes encoded = encode(noise(40, 30, 2), {.scans = Scans::progressive, .restart_rows = 1});
  const JpegInfo whole = info_of(encoded);
  for (std::size_t size = 0; size < encoded.size(); ++size) {
    JpegInfo info;
    const Status status = read_exactly(std::span(encoded).first(size), info);
    ASSERT_EQ(status.is_ok(), size >= whole.header_bytes) << size;
    if (status.is_ok()) {
      ASSERT_EQ(info.quality, whole.quality);
    }
  }
}

TEST(JpegInfo, SurvivesAnyDamage) {
  using namespace std::string_view_literals;
  const Bytes sound =
      with_segment(0xE1, "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"sv);
  const std::size_t header_bytes = info_of(sound).header_bytes;
  for (std::uint64_t number = 0; number < 20'000; ++number) {
    Random random(3, number);
    Bytes bytes = sound;
    for (std::uint64_t times = 1 + random.below(4); times > 0; --times)
      bytes[random.below(header_bytes)] = static_cast<std::byte>(random());
    if (random.below(4) == 0) bytes.resize(random.below(bytes.size()));
    JpegInfo info;
    if (!read_exactly(bytes, info).is_ok()) continue;
    ASSERT_GT(info.width, 0);
    ASSERT_GT(info.height, 0);
    ASSERT_LE(info.header_bytes, bytes.size());
  }
}

}  // namespace
}  // namespace millrace
