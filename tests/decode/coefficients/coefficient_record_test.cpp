// SPDX-License-Identifier: Apache-2.0
//
// Records of coefficients: the files that they restore, and the pixels that they show.
#include <gtest/gtest.h>
#include <millrace/random.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "augment/resample/vector_targets.h"
#include "decode/coefficients/plain_record.h"
#include "decode/coefficients/records.h"
#include "decode/jpeg/regions.h"
#include "jpeg/libjpeg.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::any_region;
using testing::Bytes;
using testing::Encoding;
using testing::Image;
using testing::Recoder;
using testing::same_pixels;
using testing::same_rows;

/// JPEGs whose pixels our own pixel stage makes, of all scans that can be restored.
std::vector<Encoding> stored_encodings() {
  std::vector<Encoding> all;
  for (const Encoding& sampling :
       {Encoding{.name = "4:4:4", .h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}},
        Encoding{.name = "4:2:2", .v = {1, 1, 1, 1}}, Encoding{.name = "4:2:0"},
        Encoding{.name = "4:4:0", .h = {1, 1, 1, 1}}})
    for (const auto scans :
         {Encoding::Scans::one, Encoding::Scans::per_component, Encoding::Scans::progressive})
      for (const int restarts : {0, 3}) {
        Encoding encoding = sampling;
        encoding.scans = scans;
        encoding.restart_mcus = restarts;
        encoding.optimised = restarts == 0 && scans == Encoding::Scans::one;
        encoding.name +=
            " " + std::to_string(static_cast<int>(scans)) + " " + std::to_string(restarts);
        all.push_back(encoding);
      }
  return all;
}

TEST(CoefficientRecord, NothingOfARefusedFileReachesTheNext) {
  const Bytes sound = encode(testing::noise(40, 30, 1), {.scans = Encoding::Scans::progressive});
  Bytes refused = encode(testing::noise(40, 30, 1), {});
  const std::array marker = {std::byte{0xFF}, std::byte{0xDA}};
  const auto scan = std::search(refused.begin(), refused.end(), marker.begin(), marker.end());
  ASSERT_GT(refused.end() - scan, 6);
  scan[6] = std::byte{0x99};  // no table has the number 9
  Recoder alone;
  Recoder used;
  EXPECT_EQ(used.record_of(refused), Bytes{});
  EXPECT_EQ(used.record_of(sound), alone.record_of(sound));
  EXPECT_FALSE(alone.record_of(sound).empty());
}

TEST(CoefficientRecord, RestoresTheFileAndShowsItsPixels) {
  Recoder recoder;
  Random random(3, 0);
  const auto of_jpeg = make_image_decoder();
  const auto of_record = make_image_decoder();
  for (const Encoding& encoding : stored_encodings())
    for (const auto& [width, height] : {std::pair{5, 3}, {16, 16}, {65, 40}, {203, 131}})
      for (const int channels : {1, 3}) {
        SCOPED_TRACE(encoding.name + ", " + std::to_string(width) + " x " + std::to_string(height) +
                     ", " + std::to_string(channels));
        const Bytes jpeg =
            encode(testing::noise(width, height, static_cast<unsigned>(width), channels), encoding);
        const Bytes record = recoder.record_of(jpeg);
        ASSERT_FALSE(record.empty()) << recoder.reason;
        EXPECT_EQ(recoder.file_of(record), jpeg) << recoder.reason;
        ASSERT_TRUE(of_record->open(record).is_ok());
        EXPECT_EQ(of_record->header().kind, ImageKind::coefficients);
        EXPECT_EQ(of_record->header().components, channels);
        EXPECT_TRUE(of_record->check().is_ok());
        ASSERT_TRUE(same_pixels(*of_jpeg, jpeg, *of_record, record, {0, 0, width, height}));
        ASSERT_TRUE(same_rows(*of_record, record, {0, 0, width, height}));
        for (int n = 0; n < 4; ++n) {
          const Region region = any_region(random, width, height);
          ASSERT_TRUE(same_pixels(*of_jpeg, jpeg, *of_record, record, region));
          ASSERT_TRUE(same_rows(*of_record, record, region));
        }
        // Our own stages do not read baseline files of several scans.
        const Bytes pixels = recoder.pixel_record_of(jpeg);
        ASSERT_EQ(pixels.empty(),
                  encoding.scans == Encoding::Scans::per_component && channels == 3);
        if (!pixels.empty()) {
          EXPECT_LT(pixels.size(), record.size());
          ASSERT_TRUE(same_pixels(*of_jpeg, jpeg, *of_record, pixels, {0, 0, width, height}));
          for (int n = 0; n < 4; ++n)
            ASSERT_TRUE(
                same_pixels(*of_jpeg, jpeg, *of_record, pixels, any_region(random, width, height)));
          for (const int reduction : {2, 4, 8})
            ASSERT_TRUE(same_pixels(
                *of_jpeg, jpeg, *of_record, pixels,
                {0, 0, (width + reduction - 1) / reduction, (height + reduction - 1) / reduction},
                reduction));
        }
        if (encoding.scans != Encoding::Scans::one) continue;
        for (const int reduction : {2, 4, 8})
          ASSERT_TRUE(same_pixels(
              *of_jpeg, jpeg, *of_record, record,
              {0, 0, (width + reduction - 1) / reduction, (height + reduction - 1) / reduction},
              reduction));
      }
}

TEST(CoefficientRecord, OfPixelsIsMadeOfSoundJpegsAlone) {
  const auto decoder = make_image_decoder();
  const auto recodes = [&](const Bytes& image) {
    Bytes form;
    EXPECT_TRUE(decoder->open(image).is_ok());
    const bool recoded = decoder->recode(form);
    PixelView view;
    const Size size = decoder->header().size();
    EXPECT_TRUE(decoder->decode({0, 0, size.width, 1}, view).is_ok()) << "it stays open";
    return recoded;
  };
  const Image image = testing::noise(64, 48, 3);
  for (const auto scans : {Encoding::Scans::one, Encoding::Scans::progressive}) {
    const Bytes jpeg = encode(image, {.scans = scans});
    EXPECT_TRUE(recodes(jpeg));
    Bytes form;
    ASSERT_TRUE(decoder->open(jpeg).is_ok() && decoder->recode(form) &&
                decoder->open(form).is_ok());
    EXPECT_FALSE(decoder->recode(form)) << "it has this form already";
    EXPECT_FALSE(recodes(encode(image, {.scans = scans, .arithmetic = true})));
    EXPECT_FALSE(recodes(encode(testing::noise(64, 48, 3, 4), {.scans = scans})));
  }
  Bytes damaged = encode(image, {});
  damaged[damaged.size() - 60] = std::byte{0xFF};
  damaged[damaged.size() - 59] = std::byte{0xD9};
  EXPECT_FALSE(recodes(damaged)) << "its first rows are sound";
}

/// One photograph in `apart`.
std::vector<Bytes> some_photographs(std::size_t apart) {
  const auto paths = testing::jpeg_files(testing::shared_dir() / "data/photos");
  std::vector<Bytes> all;
  for (std::size_t n = 0; n < paths.size(); n += apart) all.push_back(testing::read_file(paths[n]));
  return all;
}

TEST(CoefficientRecord, PhotographsAreShownOnEveryInstructionSet) {
  MILLRACE_NEEDS_SHARED("data/photos");
  Recoder recoder;
  Random random(4, 0);
  const auto of_jpeg = make_image_decoder();
  const auto of_record = make_image_decoder();
  std::size_t jpeg_bytes = 0, record_bytes = 0;
  for (const Bytes& jpeg : some_photographs(25)) {
    const Bytes record = recoder.record_of(jpeg);
    ASSERT_FALSE(record.empty()) << recoder.reason;
    jpeg_bytes += jpeg.size();
    record_bytes += record.size();
    for (const std::int64_t target : testing::vector_targets()) {
      SCOPED_TRACE(testing::name_of(target));
      const testing::OnTarget on(target);
      ASSERT_TRUE(of_record->open(record).is_ok());
      const Size size = of_record->header().size();
      for (int n = 0; n < 2; ++n)
        ASSERT_TRUE(same_pixels(*of_jpeg, jpeg, *of_record, record,
                                any_region(random, size.width, size.height)));
    }
  }
  EXPECT_LT(static_cast<double>(record_bytes), 1.35 * static_cast<double>(jpeg_bytes));
}

/// Compares a record, read by the second reader, with its file.
void expect_right_content(const Bytes& jpeg, const Bytes& record) {
  const testing::PlainRecord plain(record);
  EXPECT_EQ(plain.file_bytes, jpeg.size());
  EXPECT_EQ(plain.file_checksum, XXH3_64bits(jpeg.data(), jpeg.size()));
  EXPECT_EQ(plain.checksum, XXH3_64bits(record.data(), record.size() - 8));
  Libjpeg libjpeg(std::uint64_t{1} << 40);
  ASSERT_TRUE(libjpeg.open(jpeg).is_ok());
  ASSERT_EQ(static_cast<int>(plain.components.size()), libjpeg.image().num_components);
  EXPECT_EQ(plain.width, static_cast<int>(libjpeg.image().image_width));
  EXPECT_EQ(plain.height, static_cast<int>(libjpeg.image().image_height));
  std::array<std::vector<std::int16_t>, 3> values;
  std::array<BlockArray, 3> arrays;
  for (std::size_t n = 0; n < plain.components.size(); ++n) {
    const auto& component = plain.components[n];
    values[n].resize(component.values.size());
    arrays[n] = {values[n].data(), static_cast<unsigned>(component.across),
                 static_cast<unsigned>(component.down)};
    const int table = libjpeg.image().comp_info[n].quant_tbl_no;
    EXPECT_TRUE(
        std::ranges::equal(component.steps, libjpeg.image().quant_tbl_ptrs[table]->quantval));
  }
  ASSERT_TRUE(libjpeg.read_coefficients(std::span(arrays).first(plain.components.size())).is_ok());
  for (std::size_t n = 0; n < plain.components.size(); ++n)
    EXPECT_TRUE(std::ranges::equal(plain.components[n].values, values[n])) << n;
}

TEST(CoefficientRecord, ASecondReaderFindsTheCoefficientsOfPhotographs) {
  MILLRACE_NEEDS_SHARED("data/photos");
  Recoder recoder;
  for (const Bytes& jpeg : some_photographs(125)) {
    const Bytes record = recoder.record_of(jpeg);
    ASSERT_FALSE(record.empty()) << recoder.reason;
    expect_right_content(jpeg, record);
  }
}

TEST(CoefficientRecord, ASecondReaderFindsLongRowsAndWideValues) {
  Recoder recoder;
  const Encoding fine{.name = "4:4:4", .h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}, .quality = 100};
  bool has_wide_values = false;
  for (const Size size : {Size{9000, 9}, {30, 200}, {8, 8}}) {
    const Bytes jpeg = encode(testing::noise(size.width, size.height, 1), fine);
    const Bytes record = recoder.record_of(jpeg);
    ASSERT_FALSE(record.empty()) << recoder.reason;
    EXPECT_EQ(recoder.file_of(record), jpeg);
    expect_right_content(jpeg, record);
    const testing::PlainRecord plain(record);
    EXPECT_EQ(size.width == 9000, plain.has_long_rows);
    has_wide_values = has_wide_values || plain.has_wide_values;
    const auto of_jpeg = make_image_decoder();
    const auto of_record = make_image_decoder();
    EXPECT_TRUE(same_pixels(*of_jpeg, jpeg, *of_record, record, {0, 0, size.width, size.height}));
  }
  EXPECT_TRUE(has_wide_values);
}

}  // namespace
}  // namespace millrace
