// SPDX-License-Identifier: Apache-2.0
//
// Two interleaved decodes give the results of two separate ones: pixels, reasons, seek indices.
#include <gtest/gtest.h>
#include <millrace/detail/interleaved_decoder.h>
#include <millrace/image_decoder.h>
#include <millrace/random.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "augment/resample/vector_targets.h"
#include "decode/jpeg/damage.h"
#include "decode/jpeg/regions.h"
#include "support/jpeg_samples.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::any_region;
using testing::Bytes;
using testing::encode;
using testing::Encoding;
using testing::noise;

/// An image, its region and its index to decode.
struct Wish {
  Bytes encoded;
  Region region;
  Bytes index;
};
/// The result of a decode.
struct Decoded {
  std::string reason;
  std::string decoder;
  std::vector<std::uint8_t> pixels;
  Bytes index;

  bool operator==(const Decoded&) const = default;
};

Decoded finish(ImageDecoder& decoder, const Region& region) {
  PixelView view;
  const Status status = decoder.decode(region, view);
  Decoded outcome{status.reason(), decoder.header().decoder, {}, {}};
  for (int row = 0; status.is_ok() && row < region.height; ++row) {
    const std::uint8_t* from = view.pixels + static_cast<std::size_t>(row) * view.stride;
    outcome.pixels.insert(outcome.pixels.end(), from, from + 3 * region.width);
  }
  const auto index = decoder.extended_index();
  outcome.index.assign(index.begin(), index.end());
  decoder.close();
  return outcome;
}

bool begin_on(ImageDecoder& decoder, const Wish& wish) {
  if (!decoder.open(wish.encoded).is_ok()) return false;
  decoder.use_index(wish.index);
  return decoder.interleaved()->begin_decode(wish.region);
}

void interleave(ImageDecoder& a, ImageDecoder& b) {
  EXPECT_TRUE(a.interleaved()->decode_interleaved(*b.interleaved()));
}

std::vector<Decoded> one_by_one(const std::vector<Wish>& wishes) {
  const auto decoder = make_image_decoder();
  std::vector<Decoded> outcomes;
  for (const Wish& wish : wishes) {
    EXPECT_TRUE(decoder->open(wish.encoded).is_ok());
    decoder->use_index(wish.index);
    outcomes.push_back(finish(*decoder, wish.region));
  }
  return outcomes;
}

/// Decodes all images, two at a time. Each one begins as soon as one of the two before it is done.
std::vector<Decoded> in_turn(const std::vector<Wish>& wishes) {
  const std::array decoders{make_image_decoder(), make_image_decoder()};
  std::array<std::size_t, 2> numbers{};
  std::array<bool, 2> under_way{};
  std::vector<Decoded> outcomes(wishes.size());
  for (std::size_t next = 0;;) {
    for (std::size_t n = 0; n < 2; ++n) {
      while (!under_way[n] && next < wishes.size()) {
        numbers[n] = next++;
        under_way[n] = begin_on(*decoders[n], wishes[numbers[n]]);
        if (!under_way[n]) outcomes[numbers[n]] = finish(*decoders[n], wishes[numbers[n]].region);
      }
    }
    if (!under_way[0] && !under_way[1]) return outcomes;
    if (under_way[0] && under_way[1]) interleave(*decoders[0], *decoders[1]);
    bool ended = false;
    for (std::size_t n = 0; n < 2; ++n) {
      if (!under_way[n] || (under_way[1 - n] && decoders[n]->interleaved()->can_interleave()))
        continue;
      outcomes[numbers[n]] = finish(*decoders[n], wishes[numbers[n]].region);
      under_way[n] = false;
      ended = true;
    }
    EXPECT_TRUE(ended) << "turns were taken, and none is done";
    if (!ended) return outcomes;
  }
}

/// Compares once without seek indices, once with those of other regions.
void expect_same_in_turn(std::vector<Wish> wishes, Random& random) {
  const auto decoder = make_image_decoder();
  for (const bool indexed : {false, true}) {
    if (indexed)
      for (Wish& wish : wishes) {
        ASSERT_TRUE(decoder->open(wish.encoded).is_ok());
        decoder->use_index({});
        const Size size = decoder->header().size();
        wish.index = finish(*decoder, any_region(random, size.width, size.height)).index;
      }
    const std::vector<Decoded> expected = one_by_one(wishes);
    const std::vector<Decoded> made = in_turn(wishes);
    for (std::size_t n = 0; n < wishes.size(); ++n)
      ASSERT_TRUE(made[n] == expected[n])
          << "image " << n << (indexed ? ", indexed" : "") << ": " << made[n].decoder << ", "
          << made[n].reason << "; alone: " << expected[n].decoder << ", " << expected[n].reason;
  }
}

Wish any_wish(Bytes encoded, Random& random) {
  const auto decoder = make_image_decoder();
  if (!decoder->open(encoded).is_ok()) return {};
  const Size size = decoder->header().size();
  return {std::move(encoded), any_region(random, size.width, size.height), {}};
}

TEST(InterleavedJpegs, AllKindsComeOutAsAloneOnEveryInstructionSet) {
  Random random(11, 0);
  for (const std::int64_t target : testing::vector_targets()) {
    SCOPED_TRACE(testing::name_of(target));
    const testing::OnTarget on(target);
    std::vector<Wish> wishes;
    for (Encoding encoding : testing::encodings())
      for (const int quality : {25, 97}) {
        if (encoding.arithmetic || encoding.scans > Encoding::Scans::progressive) continue;
        encoding.quality = quality;
        encoding.optimised = quality == 25 && !encoding.arithmetic;
        const int width = 1 + static_cast<int>(random() % 400);
        wishes.push_back(any_wish(encode(noise(width, 60, random()), encoding), random));
      }
    expect_same_in_turn(std::move(wishes), random);
    if (HasFatalFailure()) return;
  }
}

TEST(InterleavedJpegs, DamagedOnesDoNotTouchTheirNeighbours) {
  Random random(12, 0);
  std::vector<Wish> wishes;
  const std::vector<Encoding> kinds = testing::encodings();
  for (int n = 0; n < 600; ++n) {
    const Bytes sound = encode(noise(120, 70, random()), kinds[random() % kinds.size()]);
    Wish wish = any_wish(n % 2 == 0 ? sound : testing::damaged(sound, random), random);
    if (!wish.encoded.empty()) wishes.push_back(std::move(wish));
  }
  EXPECT_GT(wishes.size(), 500U);
  expect_same_in_turn(std::move(wishes), random);
}

TEST(InterleavedJpegs, OneThatEndsAtOnceLeavesTheOtherAtItsBegin) {
  Random random(14, 0);
  Bytes broken = encode(noise(64, 48, 2), {});
  // A code of only ones is not allowed.
  const std::size_t scan = testing::first_scan(broken);
  for (std::size_t n = 0; n < 8; ++n) broken[scan + n] = n % 2 == 0 ? std::byte{0xFF} : std::byte{};
  const Bytes sound = encode(noise(300, 200, 1), {});
  // One begins with MCUs that are decoded, the other with many that are skipped.
  for (const Wish& wish : {Wish{sound, {0, 0, 300, 200}, {}}, Wish{sound, {5, 150, 9, 20}, {}}})
    for (const Region& region : {Region{0, 0, 64, 48}, Region{0, 40, 9, 8}}) {
      const Wish bad{broken, region, {}};
      expect_same_in_turn({bad, wish, bad, wish}, random);
      expect_same_in_turn({wish, bad, wish, bad}, random);
    }
}

TEST(InterleavedJpegs, PhotographsComeOutAsAlone) {
  MILLRACE_NEEDS_SHARED("data/photos");
  Random random(13, 0);
  std::vector<Wish> wishes;
  int seen = 0;
  for (const auto& path : testing::jpeg_files(testing::shared_dir() / "data/photos")) {
    const bool kept = seen++ % 5 == 0;
    if (kept) wishes.push_back(any_wish(testing::read_file(path), random));
  }
  expect_same_in_turn(std::move(wishes), random);
}

TEST(InterleavedJpegs, AreNotForOtherImagesNorLargeRegions) {
  const auto decoder = make_image_decoder();
  const auto begins = [&](const Bytes& encoded, const Region& region) {
    EXPECT_TRUE(decoder->open(encoded).is_ok());
    const bool begun = decoder->interleaved()->begin_decode(region);
    EXPECT_EQ(decoder->interleaved()->can_interleave(), begun);
    return begun;
  };
  const Bytes plain = encode(noise(90, 50, 1), {});
  EXPECT_TRUE(begins(plain, {0, 0, 90, 50}));
  EXPECT_FALSE(
      begins(encode(noise(90, 50, 1), {.scans = Encoding::Scans::progressive}), {0, 0, 90, 50}));
  const Bytes large = encode(noise(2000, 1500, 1), {});
  EXPECT_FALSE(begins(large, {0, 0, 2000, 1500}));
  EXPECT_TRUE(begins(large, {900, 700, 300, 300}));
  // No state of it is left.
  EXPECT_TRUE(decoder->open(plain).is_ok());
  EXPECT_FALSE(decoder->interleaved()->can_interleave());
  EXPECT_EQ(finish(*decoder, {5, 5, 10, 10}).reason, "");
}

TEST(InterleavedJpegs, ADecodeMayWantAnotherRegionThanBegan) {
  const auto decoder = make_image_decoder();
  const auto neighbour = make_image_decoder();
  const Bytes encoded = encode(noise(90, 50, 1), {});
  const Region wanted{9, 8, 20, 21};
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  const Decoded expected = finish(*decoder, wanted);
  const auto begin_another = [&] {
    ASSERT_TRUE(decoder->open(encoded).is_ok());
    ASSERT_TRUE(neighbour->open(encoded).is_ok());
    ASSERT_TRUE(decoder->interleaved()->begin_decode({8, 8, 20, 20}));
    ASSERT_TRUE(neighbour->interleaved()->begin_decode({0, 0, 3, 5}));
    interleave(*decoder, *neighbour);
  };
  begin_another();
  EXPECT_TRUE(finish(*decoder, wanted) == expected);
  begin_another();
  PixelView view;
  EXPECT_TRUE(decoder->decode_reduced({0, 0, 45, 25}, 2, view).is_ok());
  begin_another();
  EXPECT_TRUE(decoder->check().is_ok());
  EXPECT_THROW((void)decoder->interleaved()->begin_decode(wanted), Error) << "no image is open";
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  EXPECT_THROW((void)decoder->interleaved()->begin_decode({80, 0, 20, 20}), Error)
      << "not in the image";
}

TEST(InterleavedJpegs, AnIndexThatComesLaterBeginsAnew) {
  const auto decoder = make_image_decoder();
  const auto neighbour = make_image_decoder();
  const Bytes encoded = encode(noise(200, 100, 1), {});
  const Region wanted{40, 50, 70, 30};
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  decoder->use_index({});
  const Decoded whole = finish(*decoder, {0, 0, 200, 100});
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  const Decoded expected = finish(*decoder, wanted);
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  ASSERT_TRUE(neighbour->open(encoded).is_ok());
  decoder->use_index({});
  ASSERT_TRUE(decoder->interleaved()->begin_decode(wanted));
  ASSERT_TRUE(neighbour->interleaved()->begin_decode({0, 0, 3, 5}));
  interleave(*decoder, *decoder);
  EXPECT_TRUE(decoder->interleaved()->can_interleave()) << "with itself";
  interleave(*decoder, *neighbour);
  EXPECT_TRUE(decoder->use_index(whole.index));
  EXPECT_FALSE(decoder->interleaved()->can_interleave());
  EXPECT_TRUE(finish(*decoder, wanted) == expected) << "the same, and no new points";
}

TEST(InterleavedJpegs, AreNotNeededWhereTheIndexKnowsTheRows) {
  const auto decoder = make_image_decoder();
  const Bytes encoded = encode(noise(200, 100, 1), {});
  ASSERT_TRUE(decoder->open(encoded).is_ok());
  decoder->use_index({});
  const Bytes index = finish(*decoder, {0, 0, 200, 60}).index;
  for (const auto& [bottom, turns] : {std::pair(40, false), {100, true}, {10, true}}) {
    ASSERT_TRUE(decoder->open(encoded).is_ok());
    EXPECT_TRUE(decoder->use_index(index));
    EXPECT_EQ(decoder->interleaved()->begin_decode({0, 0, 50, bottom}), turns) << bottom;
    EXPECT_EQ(finish(*decoder, {0, 0, 50, bottom}).reason, "");
  }
}

}  // namespace
}  // namespace millrace
