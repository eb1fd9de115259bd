// SPDX-License-Identifier: Apache-2.0
//
// JPEGs with restart markers. Regions are found by the markers, with the same pixels as without
// them. Only data outside of the regions is not checked.
#include <gtest/gtest.h>
#include <millrace/random.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "augment/resample/vector_targets.h"
#include "decode/jpeg/damage.h"
#include "decode/jpeg/libjpeg_alone.h"
#include "decode/jpeg/plain_index.h"
#include "decode/jpeg/regions.h"
#include "jpeg/decoder/jpeg_decoder.h"
#include "jpeg/index.h"
#include "support/jpeg_samples.h"

namespace millrace {
namespace {

using testing::any_region;
using testing::Bytes;
using testing::damaged;
using testing::decode_by_libjpeg_alone;
using testing::difference_from_libjpeg;
using testing::difference_of_check;
using testing::encode;
using testing::Encoding;
using testing::LibjpegAlone;
using testing::noise;
using testing::same_region;

/// MCUs of 16 x 16 pixels: 10 in a row, in 6 rows, the last ones cut.
constexpr int mcus_across = 10;
constexpr int width = 157;
constexpr int height = 83;
constexpr Region whole{0, 0, width, height};

/// Restart intervals that end with rows, within rows, and neither.
constexpr std::array intervals{1, 3, 5, mcus_across, 7, 13, 2 * mcus_across, 3 * mcus_across + 1};

Encoding with_restarts(int mcus, bool optimised = true) {
  Encoding encoding;
  encoding.restart_mcus = mcus;
  encoding.optimised = optimised;
  return encoding;
}

/// Returns the offsets of the segments between restart markers.
std::vector<std::size_t> segments_of(const Bytes& encoded) {
  std::vector<std::size_t> begins{testing::first_scan(encoded)};
  for (std::size_t at = begins.front(); at + 1 < encoded.size(); ++at)
    if (encoded[at] == std::byte{0xFF} && (encoded[at + 1] & std::byte{0xF8}) == std::byte{0xD0})
      begins.push_back(at + 2);
  return begins;
}

TEST(RestartMarkers, RegionsAreTheSameOnEveryInstructionSet) {
  Random random(1, 0);
  for (const int channels : {3, 1})
    for (const int interval : intervals) {
      SCOPED_TRACE(std::to_string(interval) + " MCUs, channels: " + std::to_string(channels));
      const Bytes encoded =
          encode(noise(width, height, random(), channels), with_restarts(interval));
      const testing::Image reference = testing::reference_decode(encoded);
      for (const std::int64_t target : testing::vector_targets()) {
        SCOPED_TRACE(testing::name_of(target));
        const testing::OnTarget on(target);
        JpegDecoder decoder;
        ASSERT_TRUE(same_region(decoder, encoded, reference, whole));
        for (int n = 0; n < 20; ++n) {
          ASSERT_TRUE(same_region(decoder, encoded, reference, any_region(random, width, height)));
          ASSERT_STREQ(decoder.header().decoder, "millrace");
        }
      }
    }
}

TEST(RestartMarkers, AWholeIndexGoesWithThem) {
  Random random(2, 0);
  JpegDecoder decoder;
  for (const int interval : intervals)
    for (const IndexPoints points : {IndexPoints::tiles, IndexPoints::rows}) {
      SCOPED_TRACE(interval);
      const Bytes encoded = encode(noise(width, height, random()), with_restarts(interval));
      const LibjpegAlone alone = decode_by_libjpeg_alone(encoded);
      ASSERT_TRUE(decoder.open(encoded).is_ok());
      decoder.use_index({}, std::nullopt, points);
      ASSERT_TRUE(decoder.check().is_ok());
      const auto noted = decoder.extended_index();
      ASSERT_FALSE(noted.empty());
      std::vector<std::byte> index(noted.begin(), noted.end());
      ASSERT_EQ(difference_from_libjpeg(decoder, encoded, alone, whole, &index, points), "");
      for (int n = 0; n < 20; ++n) {
        const Region region = any_region(random, width, height);
        ASSERT_EQ(difference_from_libjpeg(decoder, encoded, alone, region, &index, points), "");
        ASSERT_STREQ(decoder.header().decoder, "millrace");
      }
    }
}

TEST(RestartMarkers, AtLowerResolutionsRegionsEqualTheWhole) {
  Random random(3, 0);
  JpegDecoder decoder;
  for (const int interval : intervals)
    for (const int reduction : {2, 4, 8}) {
      SCOPED_TRACE(std::to_string(interval) + " MCUs, 1/" + std::to_string(reduction));
      const Bytes encoded = encode(noise(width, height, random()), with_restarts(interval));
      const auto reduced = [&](int side) { return (side + reduction - 1) / reduction; };
      testing::Image reference{reduced(width), reduced(height), 3, {}};
      PixelView view;
      ASSERT_TRUE(decoder.open(encoded).is_ok());
      ASSERT_TRUE(decoder.decode_reduced({0, 0, reference.width, reference.height}, reduction, view)
                      .is_ok());
      for (int row = 0; row < view.height; ++row) {
        const std::uint8_t* const from = view.pixels + static_cast<std::size_t>(row) * view.stride;
        reference.pixels.insert(reference.pixels.end(), from, from + 3 * view.width);
      }
      for (int n = 0; n < 10; ++n)
        ASSERT_TRUE(same_region(decoder, encoded, reference,
                                any_region(random, reference.width, reference.height), reduction));
    }
}

TEST(RestartMarkers, WhatLiesInOtherSegmentsIsNotLookedAt) {
  JpegDecoder decoder;
  for (const int interval : {1, 5, mcus_across}) {
    SCOPED_TRACE(interval);
    Bytes encoded = encode(noise(width, height, 4), with_restarts(interval));
    const testing::Image reference = testing::reference_decode(encoded);
    const std::vector<std::size_t> segments = segments_of(encoded);
    // Other bits in the first segment.
    std::fill_n(encoded.begin() + static_cast<std::ptrdiff_t>(segments[0]), 2, std::byte{0xFE});
    const Region region{20, 36, 40, 20};
    for (const bool notes : {false, true}) {
      ASSERT_TRUE(decoder.open(encoded).is_ok());
      if (notes) decoder.use_index({});
      PixelView view;
      ASSERT_TRUE(decoder.decode(region, view).is_ok());
      ASSERT_STREQ(decoder.header().decoder, "millrace");
      ASSERT_TRUE(decoder.extended_index().empty()) << "noted without a look at the first segment";
    }
    ASSERT_TRUE(same_region(decoder, encoded, reference, region));
    ASSERT_TRUE(decoder.open(encoded).is_ok());
    EXPECT_FALSE(decoder.check().is_ok());
  }
}

/// Removes bytes of the last segment of a row, one after the other from its end on. Then it decodes
/// regions of some rows, which need all MCUs of the row but the last one.
void expect_early_end_to_be_found(JpegDecoder& decoder, int interval, int row) {
  Bytes encoded = encode(noise(width, height, 7), with_restarts(interval));
  const testing::Image reference = testing::reference_decode(encoded);
  const int segment = (row + 1) * mcus_across / interval;
  const std::size_t end = segments_of(encoded)[static_cast<std::size_t>(segment)] - 2;
  int found = 0;
  for (std::size_t byte = end; byte-- > end - 1000;) {
    encoded.erase(encoded.begin() + static_cast<std::ptrdiff_t>(byte));
    // The row alone, then as the first, the second and the third of several.
    for (const auto& [before, behind] :
         {std::pair(0, 0), std::pair(0, 1), std::pair(1, 0), std::pair(1, 2), std::pair(2, 0)}) {
      const Region region{0, 16 * (row - before) + 4, width - 16, 16 * (before + 1 + behind) - 8};
      if (region.y < 0 || region.y + region.height > height) continue;
      PixelView view;
      ASSERT_TRUE(decoder.open(encoded).is_ok());
      if (decoder.decode(region, view).is_ok())
        ASSERT_TRUE(same_region(decoder, encoded, reference, region)) << "without " << end - byte;
      else
        ++found;
    }
  }
  EXPECT_GT(found, 300);
}

TEST(RestartMarkers, ASegmentThatEndsTooEarlyIsFoundInEachRow) {
  JpegDecoder decoder;
  for (const int interval : {mcus_across, 5})
    for (int row = 0; row < 5; ++row) {
      SCOPED_TRACE("row " + std::to_string(row) + ", interval " + std::to_string(interval));
      expect_early_end_to_be_found(decoder, interval, row);
    }
}

TEST(RestartMarkers, DamageIsJudgedAsByLibjpegTurbo) {
  Random random(5, 0);
  JpegDecoder decoder;
  int refused = 0;
  int sound = 0;
  for (int n = 0; n < 2000; ++n) {
    const int interval = intervals[random() % intervals.size()];
    Bytes encoded = damaged(
        encode(noise(width, height, random()), with_restarts(interval, n % 2 == 0)), random);
    // Markers that are lost, or stand in another order.
    if (const auto segments = segments_of(encoded); n % 3 == 0 && segments.size() > 2)
      encoded[segments[1 + random() % (segments.size() - 1)] - 1] =
          static_cast<std::byte>(random() % 4 == 0 ? 0 : 0xD0 + random() % 8);
    if (!decoder.open(encoded).is_ok() || std::strcmp(decoder.header().decoder, "millrace") != 0)
      continue;
    const LibjpegAlone alone = decode_by_libjpeg_alone(encoded);
    ASSERT_EQ(difference_from_libjpeg(decoder, encoded, alone, whole), "");
    ASSERT_EQ(difference_of_check(decoder, encoded, alone), "");
    for (int region = 0; region < 4; ++region)
      ASSERT_EQ(difference_from_libjpeg(decoder, encoded, alone, any_region(random, width, height)),
                "");
    ++(alone.checked.is_ok() ? sound : refused);
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(sound, 100);
}

/// An index that ends before a region is not continued.
TEST(RestartMarkers, APartOfAnIndexIsNotUsed) {
  JpegDecoder decoder;
  Bytes encoded = encode(noise(width, height, 9), with_restarts(mcus_across));
  ASSERT_TRUE(decoder.open(encoded).is_ok());
  decoder.use_index({});
  ASSERT_TRUE(decoder.check().is_ok());
  const auto noted = decoder.extended_index();
  const auto plain = testing::read_plainly({noted.begin(), noted.end()});
  ASSERT_TRUE(plain.has_value());
  // Damage in the third row, a region below it, and the points of the first two rows.
  encoded[segments_of(encoded)[2] + 3] ^= std::byte{0x5A};
  jpeg::SeekIndex part = plain->index();
  part.points.resize(4);
  Bytes packed;
  jpeg::pack_index(part, 3, XXH3_64bits(encoded.data(), encoded.size()), packed);
  ASSERT_TRUE(decoder.open(encoded).is_ok());
  ASSERT_TRUE(decoder.use_index(packed));
  PixelView view;
  EXPECT_TRUE(decoder.decode({0, 64, 40, 10}, view).is_ok());
  EXPECT_STREQ(decoder.header().decoder, "millrace");
  EXPECT_TRUE(decoder.extended_index().empty());
}

/// The same regions are bad with an index of earlier decodes and without one.
TEST(RestartMarkers, TheSameDamageIsSeenWithAnIndexAndWithout) {
  Random random(6, 0);
  JpegDecoder with;
  JpegDecoder without;
  int bad = 0;
  for (int n = 0; n < 1000; ++n) {
    const int interval = intervals[random() % intervals.size()];
    const Bytes encoded =
        damaged(encode(noise(width, height, random()), with_restarts(interval)), random);
    Bytes index;
    for (int region = 0; region < 3; ++region) {
      const Region wanted = any_region(random, width, height);
      if (!with.open(encoded).is_ok() || !without.open(encoded).is_ok()) break;
      PixelView view;
      with.use_index(index);
      const Status judged = with.decode(wanted, view);
      if (const auto noted = with.extended_index(); !noted.empty())
        index.assign(noted.begin(), noted.end());
      const Status expected = without.decode(wanted, view);
      ASSERT_EQ(judged.reason(), expected.reason());
      if (!judged.is_ok()) {
        ++bad;
        continue;
      }
      // Stray bytes before a marker are seen only if the marker is read.
      const auto name_of = [](const JpegDecoder& decoder) {
        const std::string name = decoder.header().decoder;
        return name.substr(0, name.find(" (repaired)"));
      };
      ASSERT_EQ(name_of(with), name_of(without));
    }
  }
  EXPECT_GT(bad, 300);
}

}  // namespace
}  // namespace millrace
