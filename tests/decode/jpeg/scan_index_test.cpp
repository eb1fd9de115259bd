// SPDX-License-Identifier: Apache-2.0
//
// The seek index of progressive JPEGs: pixels and results are the same with any index, and its
// bytes are those of jpeg/progressive/scan_index.h.
#include "jpeg/progressive/scan_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/random.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "augment/resample/vector_targets.h"
#include "decode/jpeg/indexed_decode.h"
#include "decode/jpeg/plain_index.h"
#include "decode/jpeg/progressive_samples.h"
#include "decode/jpeg/regions.h"
#include "decode/jpeg/scan_damage.h"
#include "decode/jpeg/scan_scripts.h"
#include "jpeg/decoder/jpeg_decoder.h"
#include "jpeg/frame.h"
#include "jpeg/progressive/script.h"
#include "support/jpeg_samples.h"

namespace millrace {
namespace {

using jpeg::SeekIndex;
using jpeg::SeekPoint;
using testing::any_region;
using testing::baseline;
using testing::by_stages;
using testing::Bytes;
using testing::copy_of;
using testing::decode_with;
using testing::encode;
using testing::Encoding;
using testing::Image;
using testing::noise;
using testing::own_samplings;
using testing::progressive;
using testing::read_scans_plainly;
using testing::same_with_index;
using testing::Sampling;

constexpr IndexPoints by_rows = IndexPoints::rows;

/// Returns the number of rows of an index. The plain reader must find the same number.
std::size_t rows_of(const Bytes& index) {
  if (index.empty()) return 0;
  const auto plain = read_scans_plainly(index);
  EXPECT_TRUE(plain.has_value());
  return plain ? plain->points.size() / plain->scans : 0;
}

/// Returns whether an end of band reaches over a row of MCUs of an image of `width` pixels.
bool has_long_run(const Bytes& index, int width) {
  const auto plain = read_scans_plainly(index);
  return plain && std::ranges::any_of(plain->points, [&](const SeekPoint& point) {
           return point.run > 2 * (width + 15) / 8;
         });
}

/// Decodes regions one after the other, each with the index of the regions before it, then with the
/// index of the whole image.
void expect_same_regions(JpegDecoder& decoder, const Bytes& encoded, const Image& reference,
                         Random& random, int regions, Bytes& index) {
  index.clear();
  std::size_t known = 0;
  const auto any = [&] { return any_region(random, reference.width, reference.height); };
  for (int n = 0; n < regions; ++n) {
    ASSERT_TRUE(same_with_index(decoder, encoded, reference, any(), index));
    ASSERT_GE(rows_of(index), known) << "an index that became less";
    known = rows_of(index);
  }
  const Region whole{0, 0, reference.width, reference.height};
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, whole, index));
  const Bytes all = index;
  for (int n = 0; n < regions; ++n)
    ASSERT_TRUE(same_with_index(decoder, encoded, reference, any(), index));
  ASSERT_EQ(index, all) << "more points than the image has rows";
}

TEST(ScanIndex, RegionsAreTheSameOnEveryInstructionSet) {
  Random random(1, 0);
  JpegDecoder decoder;
  int images = 0;
  int indexed = 0;
  int long_runs = 0;
  for (const Sampling& sampling : own_samplings)
    for (const auto& [width, height] : {std::pair(231, 117), std::pair(160, 48), std::pair(97, 71)})
      for (int kind = 0; kind < testing::script_kinds; ++kind) {
        SCOPED_TRACE(std::string(sampling.name) + ", script " + std::to_string(kind));
        const bool is_sparse = width > 200 && kind % 2 == 0;
        const auto picture = is_sparse ? testing::sparse_noise : noise;
        const Bytes encoded = progressive(
            testing::baseline_of(
                picture(width, height, static_cast<unsigned>(random()), sampling.components),
                sampling, 40 + 12 * kind),
            testing::script_of_kind(kind, sampling.components, random));
        const Image reference = testing::reference_decode(encoded);
        Bytes index;
        for (const std::int64_t target : testing::vector_targets()) {
          SCOPED_TRACE(testing::name_of(target));
          const testing::OnTarget on(target);
          expect_same_regions(decoder, encoded, reference, random, 4, index);
          if (HasFatalFailure()) return;
        }
        ++images;
        indexed += index.empty() ? 0 : 1;
        long_runs += !index.empty() && has_long_run(index, width) ? 1 : 0;
      }
  EXPECT_EQ(images, 90);
  EXPECT_GE(indexed, 60);
  EXPECT_GE(long_runs, 5);
}

TEST(ScanIndex, GoesAsFarAsWasDecoded) {
  const Bytes encoded = progressive(baseline(own_samplings[2], 300, 160, 3), {});
  const Image reference = testing::reference_decode(encoded);
  JpegDecoder decoder;
  Bytes index;
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {64, 17, 10, 8}, index));
  EXPECT_EQ(rows_of(index), 2U);
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {0, 0, 300, 9}, index));
  EXPECT_EQ(rows_of(index), 2U);
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {290, 70, 10, 1}, index));
  EXPECT_EQ(rows_of(index), 5U);
  Bytes shorter = index;
  shorter.pop_back();
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {0, 0, 9, 9}, shorter));
  EXPECT_EQ(rows_of(shorter), 1U) << "one that counts as empty is replaced";
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {0, 159, 1, 1}, index));
  EXPECT_EQ(rows_of(index), 10U);
}

/// Changes a byte in the first tenth of each scan's data. The image has no restart markers.
Bytes damaged_at_begins(Bytes encoded) {
  const auto number = [&](std::size_t at) { return std::to_integer<std::size_t>(encoded[at]); };
  for (std::size_t begin = testing::first_scan(encoded);;) {
    std::size_t end = begin;
    while (number(end) != 0xFF || number(end + 1) == 0) ++end;
    for (std::size_t at = begin + (end - begin) / 20; at < begin + (end - begin) / 10; ++at) {
      // No marker is made, and none is lost.
      if (number(at - 1) == 0xFF || number(at) >= 0xFE) continue;
      encoded[at] ^= std::byte{1};
      break;
    }
    for (bool is_scan = false; !is_scan;) {
      if (number(end + 1) == 0xD9) return encoded;
      is_scan = number(end + 1) == 0xDA;
      end += 2 + 256 * number(end + 2) + number(end + 3);
    }
    begin = end;
  }
}

// The checksum is that of the sound image, so that its index is used.
TEST(ScanIndex, LetsAllScansBeginAtTheRegion) {
  JpegDecoder decoder;
  for (const Sampling& sampling : own_samplings) {
    SCOPED_TRACE(sampling.name);
    const Bytes encoded = progressive(baseline(sampling, 200, 240, 4), {});
    const Image reference = testing::reference_decode(encoded);
    Bytes index;
    ASSERT_TRUE(same_with_index(decoder, encoded, reference, {0, 0, 200, 240}, index, by_rows, 5));
    const Bytes damaged = damaged_at_begins(encoded);
    ASSERT_NE(damaged, encoded);
    const Region region{20, 120, 100, 120};
    ASSERT_TRUE(same_with_index(decoder, damaged, reference, region, index, by_rows, 5));
    Bytes none;
    EXPECT_FALSE(same_with_index(decoder, damaged, reference, region, none, by_rows, 5));
  }
}

TEST(ScanIndex, IsNotedOnlyWhereItIsAskedForAndTaken) {
  JpegDecoder decoder;
  PixelView view;
  const auto noted = [&](const Bytes& encoded) {
    Bytes index;
    EXPECT_TRUE(decode_with(decoder, encoded, {0, 0, 9, 9}, index, view).is_ok());
    return !index.empty();
  };
  const Bytes original = baseline(own_samplings[2], 190, 170, 5);
  const Bytes encoded = progressive(original, {});
  EXPECT_TRUE(noted(encoded));
  EXPECT_FALSE(noted(progressive(original, {}, 7))) << "restart markers";
  EXPECT_FALSE(noted(
      encode(noise(190, 170, 5), {.scans = Encoding::Scans::progressive, .arithmetic = true})));
  const Image flat{16, 300, 1, std::vector<std::uint8_t>(16 * 300, 77)};
  EXPECT_FALSE(noted(encode(flat, {.scans = Encoding::Scans::progressive})))
      << "more bytes than the file";
  ASSERT_TRUE(decoder.open(encoded).is_ok());
  ASSERT_TRUE(decoder.decode({0, 0, 90, 70}, view).is_ok());
  EXPECT_TRUE(decoder.extended_index().empty()) << "not asked for";
  Bytes damaged = encoded;
  for (std::size_t n = 3; n < 9; ++n) damaged[damaged.size() - n] ^= std::byte{0x55};
  Bytes index;
  (void)decode_with(decoder, damaged, {0, 0, 190, 170}, index, view).is_ok();
  EXPECT_STREQ(decoder.header().decoder, "libjpeg-turbo (doubtful data)");
  EXPECT_TRUE(index.empty()) << "of an image that is not sound";
}

TEST(ScanIndex, OfTheWholeIsNotedAndProvedByACheck) {
  JpegDecoder decoder;
  Random random(2, 0);
  for (const Sampling& sampling : own_samplings)
    for (int kind = 0; kind < 4; ++kind) {
      SCOPED_TRACE(std::string(sampling.name) + ", script " + std::to_string(kind));
      const Bytes encoded = progressive(baseline(sampling, 210, 90, 5),
                                        testing::script_of_kind(kind, sampling.components, random));
      const Image reference = testing::reference_decode(encoded);
      Bytes by_decode;
      PixelView view;
      ASSERT_TRUE(decode_with(decoder, encoded, {0, 0, 210, 90}, by_decode, view).is_ok());
      const auto check = [&](const Bytes& index) {
        EXPECT_TRUE(decoder.open(encoded).is_ok());
        EXPECT_EQ(decoder.use_index(index), !index.empty());
        return decoder.check();
      };
      ASSERT_TRUE(check({}).is_ok());
      ASSERT_STREQ(decoder.header().decoder, by_stages);
      ASSERT_EQ(copy_of(decoder.extended_index()), by_decode);
      ASSERT_TRUE(check(by_decode).is_ok());
      ASSERT_TRUE(decoder.extended_index().empty()) << "nothing more";
      Bytes of_a_part;
      ASSERT_TRUE(same_with_index(decoder, encoded, reference, {30, 40, 9, 9}, of_a_part));
      ASSERT_LT(rows_of(of_a_part), rows_of(by_decode));
      ASSERT_TRUE(check(of_a_part).is_ok());
      ASSERT_EQ(copy_of(decoder.extended_index()), by_decode);
      for (const int field : {0, 1, 2}) {
        auto wrong = read_scans_plainly(by_decode);
        SeekPoint& point = wrong->points[wrong->scans];
        if (field == 0) ++point.bit;
        if (field == 1) point.predictors[0] ^= 1;
        if (field == 2) ++point.run;
        Bytes packed;
        jpeg::pack_scan_index(wrong->index(), wrong->scans, wrong->jpeg, packed);
        ASSERT_EQ(check(packed).reason(), "its seek index is not that of the image");
        ASSERT_TRUE(decoder.extended_index().empty());
      }
    }
}

// libjpeg-turbo accepts the stray zeros, the stages do not.
TEST(ScanIndex, OfARepairedImageIsRefusedByACheck) {
  JpegDecoder decoder;
  Bytes encoded = progressive(baseline(own_samplings[2], 190, 170, 5), {});
  Bytes index;
  PixelView view;
  ASSERT_TRUE(decode_with(decoder, encoded, {0, 0, 190, 170}, index, view, by_rows, 5).is_ok());
  encoded.insert(encoded.end() - 2, 3, std::byte{0});
  ASSERT_TRUE(decoder.open(encoded).is_ok());
  ASSERT_FALSE(decoder.use_index({}, 5));
  ASSERT_TRUE(decoder.check().is_ok());
  EXPECT_TRUE(decoder.header().repaired);
  EXPECT_TRUE(decoder.extended_index().empty());
  ASSERT_TRUE(decoder.open(encoded).is_ok());
  ASSERT_TRUE(decoder.use_index(index, 5));
  EXPECT_EQ(decoder.check().reason(), "its seek index is of data that libjpeg-turbo has to decode");
}

// A hostile file has as many scans as the limit of scan pixels allows, each with a point in every
// row.
TEST(ScanIndex, HasALimitedNumberOfPoints) {
  const Bytes data(16 * (jpeg::max_scan_points + 8));
  jpeg::Frame frame;
  frame.component_count = 1;
  frame.mcus_across = 1;
  frame.scan = {reinterpret_cast<const std::uint8_t*>(data.data()), data.size()};
  jpeg::Script script;
  script.scans.resize(8);
  frame.mcus_down = static_cast<int>(jpeg::max_scan_points / 8);
  EXPECT_TRUE(jpeg::can_have_index(frame, script));
  ++frame.mcus_down;
  EXPECT_FALSE(jpeg::can_have_index(frame, script));
}

TEST(ScanIndex, ReadsBackWhatWasPackedAndAsThePlainReaderDoes) {
  Random random(6, 0);
  Bytes data(60'000'000);
  for (int n = 0; n < 300; ++n) {
    jpeg::Frame frame;
    frame.component_count = n % 3 == 0 ? 1 : 3;
    frame.mcus_across = 1 + static_cast<int>(random() % 100);
    frame.mcus_down = 1 + static_cast<int>(random() % 40);
    frame.scan = {reinterpret_cast<const std::uint8_t*>(data.data()), data.size()};
    jpeg::Script script;
    script.scans.resize(1 + random() % (n % 10 == 0 ? 200 : 12));
    const std::size_t scans = script.scans.size();
    for (std::size_t scan = 0; scan < scans; ++scan)
      script.scans[scan].offset = scan * (data.size() / scans);
    ASSERT_TRUE(jpeg::can_have_index(frame, script));
    const std::size_t count = 1 + random() % static_cast<std::size_t>(frame.mcus_down);
    const unsigned most = 1U << (1 + random() % (scans > 12 ? 12 : 20));
    SeekIndex index{IndexPoints::rows, std::vector<SeekPoint>(count * scans)};
    for (std::size_t at = scans; at < index.points.size(); ++at) {
      SeekPoint& point = index.points[at];
      const SeekPoint& before = index.points[at - scans];
      point = before;
      point.bit += random() % most;
      if (at % scans % 3 != 0)
        point.run = static_cast<std::uint16_t>(random() % (1U + static_cast<unsigned>(n) * 100U));
      for (std::size_t component = 0; at % scans % 2 == 0 && component < 3; ++component)
        point.predictors[component] +=
            static_cast<std::uint16_t>(random() % 9 == 0 ? random() : random() % 64 - 32);
    }
    Bytes packed;
    jpeg::pack_scan_index(index, scans, 77, packed);
    SeekIndex read;
    ASSERT_TRUE(jpeg::unpack_scan_index(packed, frame, script, 77, read));
    ASSERT_EQ(read, index);
    const auto plain = read_scans_plainly(packed);
    ASSERT_TRUE(plain.has_value());
    ASSERT_EQ(plain->scans, scans);
    ASSERT_EQ(plain->jpeg, 77U);
    ASSERT_EQ(plain->index(), index);
    ASSERT_FALSE(jpeg::unpack_scan_index(packed, frame, script, 78, read));
    ASSERT_TRUE(read.points.empty());
    ASSERT_FALSE(jpeg::unpack_index(packed, frame, 77, read)) << "what an older reader finds";
    frame.mcus_down = static_cast<int>(count) - 1;
    ASSERT_FALSE(jpeg::unpack_scan_index(packed, frame, script, 77, read));
    frame.mcus_down = 40;
    script.scans.emplace_back();
    ASSERT_FALSE(jpeg::unpack_scan_index(packed, frame, script, 77, read));
  }
}

}  // namespace
}  // namespace millrace
