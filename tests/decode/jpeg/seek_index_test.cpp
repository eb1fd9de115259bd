// SPDX-License-Identifier: Apache-2.0
//
// The seek index: pixels and results are the same with any index, and its bytes are those of
// jpeg/index.h.
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
#include "decode/jpeg/regions.h"
#include "jpeg/decoder/baseline.h"
#include "jpeg/decoder/jpeg_decoder.h"
#include "jpeg/frame.h"
#include "jpeg/index.h"
#include "support/jpeg_samples.h"
#include "support/sanitizers.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using jpeg::SeekIndex;
using jpeg::SeekPoint;
using testing::any_region;
using testing::Bytes;
using testing::copy_of;
using testing::decode_with;
using testing::encode;
using testing::Encoding;
using testing::forged;
using testing::Image;
using testing::noise;
using testing::read_plainly;
using testing::same_with_index;

/// Returns the number of points of an index. The plain reader must find the same number.
std::size_t points_of(const Bytes& index) {
  if (index.empty()) return 0;
  const auto plain = read_plainly(index);
  EXPECT_TRUE(plain.has_value());
  return plain ? plain->points.size() : 0;
}

/// Decodes regions one after the other, each with the index of the regions before it.
void expect_same_regions(const Bytes& encoded, Random& random, int regions,
                         IndexPoints kind = IndexPoints::tiles) {
  const Image reference = testing::reference_decode(encoded);
  for (const std::int64_t target : testing::vector_targets()) {
    SCOPED_TRACE(testing::name_of(target));
    const testing::OnTarget on(target);
    JpegDecoder decoder;
    Bytes index;
    std::size_t points = 0;
    for (int n = 0; n < regions; ++n) {
      ASSERT_TRUE(same_with_index(decoder, encoded, reference,
                                  any_region(random, reference.width, reference.height), index,
                                  kind));
      ASSERT_GE(points_of(index), points) << "an index that became less";
      points = points_of(index);
    }
    const Region whole{0, 0, reference.width, reference.height};
    ASSERT_TRUE(same_with_index(decoder, encoded, reference, whole, index, kind));
    points = points_of(index);
    for (int n = 0; n < regions; ++n)
      ASSERT_TRUE(same_with_index(decoder, encoded, reference,
                                  any_region(random, reference.width, reference.height), index));
    ASSERT_EQ(points_of(index), points) << "more points than the image has tiles";
  }
}

TEST(SeekIndex, RegionsAreTheSameOnEveryInstructionSet) {
  Random random(1, 0);
  JpegDecoder decoder;
  int compared = 0;
  for (Encoding encoding : testing::encodings()) {
    const Bytes probe = encode(noise(40, 30, 1), encoding);
    if (!decoder.open(probe).is_ok() || std::strcmp(decoder.header().decoder, "millrace") != 0)
      continue;
    for (const auto& [width, height] :
         {std::pair(331, 117), std::pair(64, 48), std::pair(128, 9), std::pair(200, 1)})
      for (const int quality : {30, 98})
        for (const bool optimised : {false, true}) {
          SCOPED_TRACE(encoding.name + ", quality " + std::to_string(quality) + ", " +
                       std::to_string(width) + " x " + std::to_string(height));
          encoding.quality = quality;
          encoding.optimised = optimised;
          expect_same_regions(encode(noise(width, height, random()), encoding), random, 6,
                              optimised ? IndexPoints::rows : IndexPoints::tiles);
          if (HasFatalFailure()) return;
          ++compared;
        }
  }
  expect_same_regions(encode(noise(300, 90, 5, 1), {}), random, 12);
  EXPECT_GE(compared, 9 * 16);
}

TEST(SeekIndex, PhotographsAreTheSameOnEveryInstructionSet) {
  MILLRACE_NEEDS_SHARED("data/photos");
  Random random(2, 0);
  int seen = 0;
  for (const auto& path : testing::jpeg_files(testing::shared_dir() / "data/photos")) {
    if (seen++ % testing::one_in != 0) continue;
    SCOPED_TRACE(path.string());
    expect_same_regions(testing::read_file(path), random, 5,
                        seen % 3 == 0 ? IndexPoints::rows : IndexPoints::tiles);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(seen, 500);
}

TEST(SeekIndex, GoesAsFarAsWasDecoded) {
  const Bytes encoded =
      encode(noise(300, 64, 3), {.name = "4:4:4", .h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}});
  const Image reference = testing::reference_decode(encoded);
  JpegDecoder decoder;
  Bytes index;
  // 38 MCUs in a row make 5 tiles.
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {64, 8, 10, 8}, index));
  EXPECT_EQ(points_of(index), 5U + 2);
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {0, 0, 300, 8}, index));
  EXPECT_EQ(points_of(index), 5U + 2);
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {290, 33, 10, 1}, index));
  EXPECT_EQ(points_of(index), 5U * 5);
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {0, 63, 1, 1}, index));
  EXPECT_EQ(points_of(index), 5U * 8);
  Bytes of_rows;
  const IndexPoints rows = IndexPoints::rows;
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {64, 8, 10, 8}, of_rows, rows));
  EXPECT_EQ(points_of(of_rows), 2U);
  // An existing index keeps its granularity.
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {290, 33, 10, 1}, of_rows));
  EXPECT_EQ(points_of(of_rows), 5U);
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {0, 63, 1, 1}, index, rows));
  EXPECT_EQ(points_of(index), 5U * 8);
  Bytes shorter = of_rows;
  shorter.pop_back();
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {0, 0, 9, 9}, shorter));
  EXPECT_EQ(points_of(shorter), 5U + 1) << "one that counts as empty becomes what is asked for";
}

TEST(SeekIndex, IsNotedOnlyWhereItIsAskedForAndTaken) {
  JpegDecoder decoder;
  PixelView view;
  const Bytes encoded = encode(noise(90, 70, 4), {});
  ASSERT_TRUE(decoder.open(encoded).is_ok());
  ASSERT_TRUE(decoder.decode({0, 0, 90, 70}, view).is_ok());
  EXPECT_TRUE(decoder.extended_index().empty());
  Bytes index;
  const Encoding arithmetic{.arithmetic = true};
  ASSERT_TRUE(decode_with(decoder, encode(noise(90, 70, 4), arithmetic), {0, 0, 9, 9}, index, view)
                  .is_ok());
  EXPECT_TRUE(index.empty());
  Bytes cut = encoded;
  cut.resize(cut.size() * 2 / 3);
  EXPECT_FALSE(decode_with(decoder, cut, {0, 0, 90, 70}, index, view).is_ok());
  EXPECT_TRUE(index.empty()) << "of an image that is not sound";
}

TEST(SeekIndex, OfTheWholeIsNotedAndProvedByACheck) {
  JpegDecoder decoder;
  std::size_t proved = 0;
  for (Encoding encoding : testing::encodings()) {
    if (encoding.scans == Encoding::Scans::progressive) continue;  // in scan_index_test.cpp
    const Bytes encoded = encode(noise(210, 90, 5), encoding);
    const Image reference = testing::reference_decode(encoded);
    Bytes by_decode;
    PixelView view;
    ASSERT_TRUE(decode_with(decoder, encoded, {0, 0, 210, 90}, by_decode, view).is_ok());
    const auto check = [&](const Bytes& index, IndexPoints points = IndexPoints::tiles) {
      EXPECT_TRUE(decoder.open(encoded).is_ok());
      EXPECT_EQ(decoder.use_index(index, std::nullopt, points), !index.empty());
      return decoder.check();
    };
    ASSERT_TRUE(check({}).is_ok());
    const bool has_restarts = encoding.restart_rows > 0;
    if (has_restarts)  // restart markers replace an index that is not stored
      ASSERT_TRUE(std::exchange(by_decode, copy_of(decoder.extended_index())).empty());
    else
      ASSERT_EQ(copy_of(decoder.extended_index()), by_decode);
    if (by_decode.empty()) continue;
    ASSERT_TRUE(check(by_decode).is_ok());
    ASSERT_TRUE(decoder.extended_index().empty()) << "nothing more";
    if (!has_restarts) {
      Bytes of_a_part;
      ASSERT_TRUE(same_with_index(decoder, encoded, reference, {30, 20, 9, 9}, of_a_part));
      ASSERT_LT(points_of(of_a_part), points_of(by_decode));
      ASSERT_TRUE(check(of_a_part).is_ok());
      ASSERT_EQ(copy_of(decoder.extended_index()), by_decode);
    }
    ASSERT_TRUE(check({}, IndexPoints::rows).is_ok());
    const Bytes of_rows = copy_of(decoder.extended_index());
    ASSERT_LT(points_of(of_rows), points_of(by_decode));
    ASSERT_TRUE(check(of_rows).is_ok());
    ASSERT_TRUE(decoder.extended_index().empty()) << "nothing more";
    // One bit of one predictor of one point.
    for (const auto& [index, number] :
         {std::pair(by_decode, 1UL), std::pair(by_decode, points_of(by_decode) - 1),
          std::pair(of_rows, points_of(of_rows) - 1)}) {
      auto wrong = read_plainly(index);
      wrong->points[number].predictors[0] ^= 1;
      Bytes packed;
      jpeg::pack_index(wrong->index(), wrong->components, wrong->jpeg, packed);
      ASSERT_EQ(check(packed).reason(), "its seek index is not that of the image");
      ASSERT_TRUE(decoder.extended_index().empty());
      ++proved;
    }
  }
  EXPECT_GE(proved, 27U);
}

TEST(SeekIndex, OfAnotherImageOrDamagedIsNotLookedAt) {
  Random random(5, 0);
  JpegDecoder decoder;
  const Bytes encoded = encode(noise(200, 90, 6), {});
  const Image reference = testing::reference_decode(encoded);
  Bytes index;
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {0, 0, 200, 90}, index));
  const Bytes good = index;
  const Bytes other = encode(noise(200, 90, 7), {});
  PixelView view;
  ASSERT_TRUE(decode_with(decoder, other, {0, 0, 200, 90}, index, view).is_ok());
  EXPECT_NE(index, good) << "a new one for another image";
  ASSERT_TRUE(same_with_index(decoder, encoded, reference, {9, 9, 90, 70}, index));
  for (std::size_t at = 0; at < good.size(); ++at) {
    Bytes damaged = good;
    damaged[at] ^= static_cast<std::byte>(1 + random() % 255);
    ASSERT_TRUE(same_with_index(decoder, encoded, reference, {70, 40, 30, 30}, damaged)) << at;
    ASSERT_LT(points_of(damaged), points_of(good)) << "byte " << at << " was not noticed";
  }
  for (std::size_t size = 0; size < good.size(); size += 1 + size / 8) {
    Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_TRUE(same_with_index(decoder, encoded, reference, {70, 40, 30, 30}, cut)) << size;
  }
}

TEST(SeekIndex, ReadsBackWhatWasPackedAndAsThePlainReaderDoes) {
  Random random(6, 0);
  Bytes scan(16'000'000);
  for (int n = 0; n < 500; ++n) {
    jpeg::Frame frame;
    frame.component_count = n % 3 == 0 ? 1 : 3;
    frame.mcus_across = 1 + static_cast<int>(random() % 100);
    frame.mcus_down = 1 + static_cast<int>(random() % 40);
    frame.scan = {reinterpret_cast<const std::uint8_t*>(scan.data()), scan.size()};
    const auto of = n % 2 == 0 ? IndexPoints::tiles : IndexPoints::rows;
    std::vector<SeekPoint> index(1 +
                                 random() % static_cast<std::size_t>(jpeg::Tiles(frame, of).count));
    const unsigned most = 1U << (1 + random() % (of == IndexPoints::rows ? 21 : 11));
    for (std::size_t point = 1; point < index.size(); ++point) {
      index[point] = index[point - 1];
      index[point].bit += 1 + random() % most;
      for (int component = 0; component < frame.component_count; ++component)
        index[point].predictors[static_cast<std::size_t>(component)] +=
            static_cast<std::uint16_t>(random() % 9 == 0 ? random() : random() % 64 - 32);
    }
    Bytes packed;
    jpeg::pack_index({of, index}, frame.component_count, 77, packed);
    SeekIndex read;
    ASSERT_TRUE(jpeg::unpack_index(packed, frame, 77, read));
    ASSERT_EQ(read, (SeekIndex{of, index}));
    const auto plain = read_plainly(packed);
    ASSERT_TRUE(plain.has_value());
    ASSERT_EQ(plain->index(), read);
    ASSERT_EQ(plain->jpeg, 77U);
    ASSERT_FALSE(jpeg::unpack_index(packed, frame, 78, read));
    ASSERT_TRUE(read.points.empty());
    --frame.mcus_down;
    ASSERT_EQ(jpeg::unpack_index(packed, frame, 77, read),
              static_cast<std::int64_t>(index.size()) <= jpeg::Tiles(frame, of).count);
  }
}

TEST(SeekIndex, ForgedOnesReadNothingBeyondTheImage) {
  Random random(7, 0);
  JpegDecoder decoder;
  std::size_t taken = 0;
  for (Encoding encoding : testing::encodings()) {
    const Bytes encoded = encode(noise(150, 80, 8), encoding);
    Bytes good;
    PixelView view;
    if (!decode_with(decoder, encoded, {0, 0, 150, 80}, good, view).is_ok() || good.empty())
      continue;
    Bytes of_rows;
    ASSERT_TRUE(
        decode_with(decoder, encoded, {0, 0, 150, 80}, of_rows, view, IndexPoints::rows).is_ok());
    for (int n = 0; n < 300; ++n) {
      Bytes index = forged(n % 3 == 0 ? of_rows : good, random);
      ASSERT_TRUE(decoder.open(encoded).is_ok());
      decoder.use_index(index);
      // Any result is allowed, but the sanitizer must not find a read outside of the image's
      // memory.
      (void)decoder.decode(any_region(random, 150, 80), view).is_ok();
      taken += std::strcmp(decoder.header().decoder, "millrace") == 0 ? 1 : 0;
    }
  }
  EXPECT_GT(taken, 100U);
}

TEST(SeekIndex, DamageIsJudgedAsWithout) {
  Random random(8, 0);
  JpegDecoder with;
  JpegDecoder without;
  const std::vector<Encoding> kinds = testing::encodings();
  int bad = 0;
  int indexed = 0;
  for (int n = 0; n < 2500; ++n) {
    Encoding encoding = kinds[random() % kinds.size()];
    encoding.scans = Encoding::Scans::one;
    encoding.arithmetic = false;
    encoding.quality = 20 + static_cast<int>(random() % 80);
    Bytes encoded = encode(noise(140, 60, random()), encoding);
    const std::size_t scan = testing::first_scan(encoded);
    encoded[scan + random() % (encoded.size() - scan)] ^=
        static_cast<std::byte>(1 + random() % 255);
    Bytes index;
    for (int region = 0; region < 4; ++region) {
      const Region wanted = any_region(random, 140, 60);
      PixelView theirs;
      PixelView ours;
      indexed += index.empty() ? 0 : 1;
      const Status judged = decode_with(with, encoded, wanted, index, ours);
      Status expected = without.open(encoded);
      if (expected.is_ok()) expected = without.decode(wanted, theirs);
      ASSERT_EQ(judged.reason(), expected.reason());
      if (!judged.is_ok()) {
        ++bad;
        continue;
      }
      ASSERT_STREQ(with.header().decoder, without.header().decoder);
      for (int row = 0; row < wanted.height; ++row)
        ASSERT_EQ(std::memcmp(ours.pixels + static_cast<std::size_t>(row) * ours.stride,
                              theirs.pixels + static_cast<std::size_t>(row) * theirs.stride,
                              static_cast<std::size_t>(wanted.width) * 3),
                  0);
    }
  }
  EXPECT_GT(bad, 200);
  EXPECT_GT(indexed, 1000);
}

}  // namespace
}  // namespace millrace
