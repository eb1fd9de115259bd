// SPDX-License-Identifier: Apache-2.0
//
// Damaged, foreign and forged seek indices of progressive JPEGs, and indices of damaged images.
#include <gtest/gtest.h>
#include <millrace/random.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "decode/jpeg/indexed_decode.h"
#include "decode/jpeg/plain_index.h"
#include "decode/jpeg/progressive_samples.h"
#include "decode/jpeg/regions.h"
#include "decode/jpeg/scan_damage.h"
#include "decode/jpeg/scan_scripts.h"
#include "jpeg/decoder/jpeg_decoder.h"
#include "jpeg/progressive/scan_index.h"
#include "support/jpeg_samples.h"

namespace millrace {
namespace {

using jpeg::SeekPoint;
using testing::any_region;
using testing::baseline;
using testing::by_stages;
using testing::Bytes;
using testing::copy_of;
using testing::decode_with;
using testing::forged;
using testing::Image;
using testing::own_samplings;
using testing::progressive;
using testing::read_scans_plainly;
using testing::same_with_index;
using testing::Sampling;

TEST(ScanIndexDamage, OfAnotherImageOrDamagedIsNotLookedAt) {
  Random random(5, 0);
  JpegDecoder decoder;
  const Bytes encoded = progressive(baseline(own_samplings[2], 200, 190, 6), {});
  const Image reference = testing::reference_decode(encoded);
  Bytes index;
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {0, 0, 200, 190}, index));
  const Bytes good = index;
  const Bytes other = progressive(baseline(own_samplings[2], 200, 190, 7), {});
  const Bytes other_baseline = baseline(own_samplings[2], 200, 190, 6);
  PixelView view;
  for (const Bytes& image : {other, other_baseline}) {
    index = good;
    ASSERT_TRUE(decode_with(decoder, image, {0, 0, 200, 190}, index, view).is_ok());
    EXPECT_NE(index, good) << "a new one for another image";
    ASSERT_TRUE(same_with_index(decoder, encoded, reference, {9, 9, 90, 70}, index));
  }
  const auto expect_noticed = [&](const Bytes& damaged) {
    ASSERT_TRUE(decoder.open(encoded).is_ok());
    ASSERT_FALSE(decoder.use_index(damaged));
    index = damaged;
    ASSERT_TRUE(same_with_index(decoder, encoded, reference, {70, 90, 30, 30}, index));
  };
  for (std::size_t at = 0; at < good.size(); ++at) {
    SCOPED_TRACE(at);
    Bytes damaged = good;
    damaged[at] ^= static_cast<std::byte>(1 + random() % 255);
    ASSERT_NO_FATAL_FAILURE(expect_noticed(damaged));
  }
  for (std::size_t size = 0; size < good.size(); size += 1 + size / 8)
    ASSERT_NO_FATAL_FAILURE(
        expect_noticed({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}));
  // An index of a baseline JPEG is not one of a progressive JPEG, whatever the checksum.
  Bytes of_baseline;
  ASSERT_TRUE(decoder.open(other_baseline).is_ok());
  ASSERT_FALSE(decoder.use_index(good, read_scans_plainly(good)->jpeg));
  ASSERT_TRUE(decoder.decode({0, 0, 200, 190}, view).is_ok());
  of_baseline = copy_of(decoder.extended_index());
  ASSERT_TRUE(decoder.open(encoded).is_ok());
  ASSERT_FALSE(decoder.use_index(of_baseline));
}

/// Puts any numbers into some points.
Bytes with_any_points(const Bytes& index, Random& random) {
  auto wrong = read_scans_plainly(index);
  for (int n = 0; n < 5; ++n) {
    const std::size_t at = wrong->scans + random() % (wrong->points.size() - wrong->scans);
    SeekPoint& point = wrong->points[at];
    // No point lies before the one above.
    const SeekPoint& below = wrong->points[std::min(at + wrong->scans, wrong->points.size() - 1)];
    if (random() % 2 == 0 && below.bit > point.bit) point.bit += random() % (below.bit - point.bit);
    if (random() % 2 == 0) point.run = static_cast<std::uint16_t>(random());
    for (auto& predictor : point.predictors)
      if (random() % 4 == 0) predictor = static_cast<std::uint16_t>(random());
  }
  Bytes packed;
  jpeg::pack_scan_index(wrong->index(), wrong->scans, wrong->jpeg, packed);
  return packed;
}

TEST(ScanIndexDamage, ForgedOnesReadNothingBeyondTheImage) {
  Random random(7, 0);
  JpegDecoder decoder;
  int taken = 0;
  int used = 0;
  for (const Sampling& sampling : own_samplings)
    for (int kind = 0; kind < testing::script_kinds; ++kind) {
      const Bytes encoded = progressive(baseline(sampling, 170, 90, 8),
                                        testing::script_of_kind(kind, sampling.components, random));
      Bytes good;
      PixelView view;
      ASSERT_TRUE(decode_with(decoder, encoded, {0, 0, 170, 90}, good, view).is_ok());
      if (good.empty()) continue;
      for (int n = 0; n < 40; ++n) {
        const Bytes index = n % 2 == 0 ? forged(good, random) : with_any_points(good, random);
        ASSERT_TRUE(decoder.open(encoded).is_ok());
        taken += decoder.use_index(index) ? 1 : 0;
        // Any result is allowed, but the sanitizer must not find a read outside of the image's
        // memory.
        (void)decoder.decode(any_region(random, 170, 90), view).is_ok();
        used += std::strcmp(decoder.header().decoder, by_stages) == 0 ? 1 : 0;
      }
    }
  EXPECT_GT(taken, 500);
  EXPECT_GT(used, 200);
}

TEST(ScanIndexDamage, DamageIsJudgedAsWithout) {
  Random random(8, 0);
  JpegDecoder with;
  JpegDecoder without;
  int bad = 0;
  int doubtful = 0;
  int indexed = 0;
  for (int n = 0; n < 400; ++n) {
    const Sampling& sampling = own_samplings[random() % std::size(own_samplings)];
    Bytes encoded = progressive(
        baseline(sampling, 140, 60, static_cast<unsigned>(random()), 20 + n % 80),
        testing::script_of_kind(n % testing::script_kinds, sampling.components, random));
    if (n % 2 == 0) {
      encoded = testing::damaged_scans(std::move(encoded), random);
    } else {
      const std::size_t scan = testing::first_scan(encoded);
      encoded[scan + random() % (encoded.size() - scan)] ^=
          static_cast<std::byte>(1 + random() % 255);
    }
    Bytes index;
    for (int region = 0; region < 4; ++region) {
      if (!without.open(encoded).is_ok()) break;
      const Region wanted = any_region(random, without.header().width, without.header().height);
      PixelView theirs;
      PixelView ours;
      indexed += index.empty() ? 0 : 1;
      const Status judged = decode_with(with, encoded, wanted, index, ours);
      const Status expected = without.decode(wanted, theirs);
      ASSERT_EQ(judged.reason(), expected.reason());
      ASSERT_STREQ(with.header().decoder, without.header().decoder);
      doubtful += std::strcmp(with.header().decoder, by_stages) == 0 ? 0 : 1;
      if (!judged.is_ok()) {
        ++bad;
        continue;
      }
      for (int row = 0; row < wanted.height; ++row)
        ASSERT_EQ(std::memcmp(ours.pixels + static_cast<std::size_t>(row) * ours.stride,
                              theirs.pixels + static_cast<std::size_t>(row) * theirs.stride,
                              static_cast<std::size_t>(wanted.width) * 3),
                  0);
    }
  }
  EXPECT_GT(bad, 50);
  EXPECT_GT(doubtful, 50);
  EXPECT_GT(indexed, 200);
}

}  // namespace
}  // namespace millrace
