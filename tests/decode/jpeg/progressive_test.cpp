// SPDX-License-Identifier: Apache-2.0
//
// Our own decoder of progressive JPEGs, compared with libjpeg-turbo: which images it leaves to it,
// equal pixels on every instruction set, and equal results for damaged files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/random.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "augment/resample/vector_targets.h"
#include "decode/jpeg/libjpeg_alone.h"
#include "decode/jpeg/progressive_samples.h"
#include "decode/jpeg/regions.h"
#include "decode/jpeg/scan_damage.h"
#include "decode/jpeg/scan_scripts.h"
#include "jpeg/decoder/jpeg_decoder.h"
#include "support/jpeg_samples.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::any_region;
using testing::baseline;
using testing::by_stages;
using testing::Bytes;
using testing::decode_by_libjpeg_alone;
using testing::difference_from_libjpeg;
using testing::difference_of_check;
using testing::encode;
using testing::Encoding;
using testing::LibjpegAlone;
using testing::own_samplings;
using testing::progressive;
using testing::Sampling;
using testing::Script;

constexpr const char* by_libjpeg = "libjpeg-turbo (progressive)";

std::string opened_decoder(JpegDecoder& decoder, const Bytes& encoded) {
  EXPECT_TRUE(decoder.open(encoded).is_ok());
  return decoder.header().decoder;
}

/// Compares the whole and some regions.
void expect_same_pixels(const Bytes& encoded, Random& random, int regions,
                        const LibjpegAlone& alone) {
  JpegDecoder decoder;
  ASSERT_EQ(opened_decoder(decoder, encoded), by_stages);
  const Size size = decoder.header().size();
  ASSERT_EQ(difference_from_libjpeg(decoder, encoded, alone, {0, 0, size.width, size.height}), "");
  ASSERT_STREQ(decoder.header().decoder, by_stages);
  for (int n = 0; n < regions; ++n) {
    ASSERT_EQ(difference_from_libjpeg(decoder, encoded, alone,
                                      any_region(random, size.width, size.height)),
              "");
    ASSERT_STREQ(decoder.header().decoder, by_stages);
  }
  ASSERT_EQ(difference_of_check(decoder, encoded, alone), "");
}

TEST(ProgressiveJpeg, EqualsLibjpegTurboOnEveryInstructionSet) {
  Random random(1, 0);
  for (const Sampling& sampling : own_samplings)
    for (const auto& [width, height] : {std::pair(131, 117), std::pair(64, 48), std::pair(5, 70)})
      for (int kind = 0; kind < testing::script_kinds; ++kind)
        for (const int restart : {0, 1, 7}) {
          SCOPED_TRACE(std::string(sampling.name) + ", script " + std::to_string(kind) +
                       ", restart " + std::to_string(restart));
          const Bytes encoded =
              progressive(baseline(sampling, width, height, random(), 40 + 12 * kind),
                          testing::script_of_kind(kind, sampling.components, random), restart);
          const LibjpegAlone alone = decode_by_libjpeg_alone(encoded);
          ASSERT_TRUE(alone.checked.is_ok()) << alone.checked.reason();
          for (const std::int64_t target : testing::vector_targets()) {
            SCOPED_TRACE(testing::name_of(target));
            const testing::OnTarget on(target);
            expect_same_pixels(encoded, random, 4, alone);
            if (HasFatalFailure()) return;
          }
        }
}

TEST(ProgressiveJpeg, PhotographsEqualLibjpegTurbo) {
  MILLRACE_NEEDS_SHARED("data/photos");
#if defined(MILLRACE_ASAN) || defined(MILLRACE_TSAN)
  constexpr int one_in = 50;
#else
  constexpr int one_in = 10;
#endif
  Random random(2, 0);
  int seen = 0;
  for (const auto& path : testing::jpeg_files(testing::shared_dir() / "data/photos")) {
    if (seen++ % one_in != 0) continue;
    SCOPED_TRACE(path.string());
    const Bytes original = testing::read_file(path);
    JpegDecoder decoder;
    ASSERT_TRUE(decoder.open(original).is_ok());
    const int kind = seen / one_in % testing::script_kinds;
    const Bytes encoded =
        progressive(original, testing::script_of_kind(kind, decoder.header().components, random),
                    seen / one_in % 4 == 0 ? 60 : 0);
    expect_same_pixels(encoded, random, 20, decode_by_libjpeg_alone(encoded));
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(seen, 500);
}

TEST(ProgressiveJpeg, DamageIsJudgedAsByLibjpegTurbo) {
  MILLRACE_NEEDS_LIBJPEG_OF_X86();
  Random random(3, 0);
  JpegDecoder decoder;
  int refused = 0;
  int sound = 0;
  int by_others = 0;
  for (int n = 0; n < 3000; ++n) {
    const Sampling& sampling = own_samplings[random() % std::size(own_samplings)];
    const int kind = n % testing::script_kinds;
    Bytes encoded =
        progressive(baseline(sampling, 70, 50, random(), 30 + n % 60),
                    testing::script_of_kind(kind, sampling.components, random), n % 3 == 0 ? 5 : 0);
    encoded = testing::damaged_scans(std::move(encoded), random);
    if (!decoder.open(encoded).is_ok()) continue;
    const bool by_others_at_once = std::strcmp(decoder.header().decoder, by_stages) != 0;
    const LibjpegAlone alone = decode_by_libjpeg_alone(encoded);
    const Size size = decoder.header().size();
    ASSERT_EQ(difference_from_libjpeg(decoder, encoded, alone, {0, 0, size.width, size.height}),
              "");
    ASSERT_EQ(difference_of_check(decoder, encoded, alone), "");
    for (int region = 0; region < 3; ++region)
      ASSERT_EQ(difference_from_libjpeg(decoder, encoded, alone,
                                        any_region(random, size.width, size.height)),
                "");
    if (by_others_at_once)
      ++by_others;
    else
      ++(alone.checked.is_ok() ? sound : refused);
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(sound, 200);
  EXPECT_GT(by_others, 200);
}

TEST(ProgressiveJpeg, DamageAfterARegionIsSeenByCheckAlone) {
  Bytes encoded = progressive(baseline(own_samplings[0], 64, 200, 4), {});
  // The last bytes of the last scan.
  for (std::size_t n = 3; n < 9; ++n) encoded[encoded.size() - n] ^= std::byte{0x55};
  JpegDecoder decoder;
  PixelView view;
  ASSERT_EQ(opened_decoder(decoder, encoded), by_stages);
  EXPECT_TRUE(decoder.decode({0, 0, 64, 40}, view).is_ok());
  EXPECT_STREQ(decoder.header().decoder, by_stages);
  ASSERT_EQ(opened_decoder(decoder, encoded), by_stages);
  const LibjpegAlone alone = decode_by_libjpeg_alone(encoded);
  EXPECT_EQ(decoder.decode({0, 0, 64, 200}, view).reason(), alone.decoded.reason());
  EXPECT_STREQ(decoder.header().decoder, "libjpeg-turbo (doubtful data)");
  EXPECT_EQ(difference_of_check(decoder, encoded, alone), "");
}

// libjpeg ends such a run with the scan, without a warning.
TEST(ProgressiveJpeg, AnEndOfBandBeyondTheScanIsDoubtful) {
  const testing::Image flat{16, 8, 1, std::vector<std::uint8_t>(16 * 8, 77)};
  Bytes encoded = encode(flat, {.scans = Encoding::Scans::progressive});
  // The last scan is one end of band of 2 blocks: a code of one bit, and a bit more.
  std::byte& scan = encoded[encoded.size() - 3];
  ASSERT_EQ(scan, std::byte{0b0011'1111});
  JpegDecoder decoder;
  PixelView view;
  ASSERT_EQ(opened_decoder(decoder, encoded), by_stages);
  ASSERT_TRUE(decoder.decode({0, 0, 16, 8}, view).is_ok());
  EXPECT_STREQ(decoder.header().decoder, by_stages);
  scan = std::byte{0b0111'1111};  // 3 blocks
  ASSERT_EQ(opened_decoder(decoder, encoded), by_stages);
  ASSERT_TRUE(decoder.decode({0, 0, 16, 8}, view).is_ok());
  EXPECT_STREQ(decoder.header().decoder, "libjpeg-turbo (doubtful data)");
  EXPECT_EQ(view.pixels[7 * view.stride + 47], 77);
}

TEST(ProgressiveJpeg, AnIncompleteFileGoesToLibjpegTurbo) {
  JpegDecoder decoder;
  const Bytes whole = baseline(own_samplings[2], 40, 30, 5);
  const Script of_fewer_bits = {{{0, 1, 2}}, {{0}, 1, 63, 0, 1}, {{1}, 1, 63}, {{2}, 1, 63}};
  const Script without_a_band = {{{0, 1, 2}}, {{0}, 1, 63}, {{1}, 1, 63}, {{2}, 1, 60}};
  for (const Script& script : {of_fewer_bits, without_a_band})
    EXPECT_EQ(opened_decoder(decoder, progressive(whole, script)), by_libjpeg);
  const Bytes encoded = progressive(whole, {});
  for (const std::size_t marker : testing::later_markers(encoded)) {
    const Bytes cut(encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(marker));
    EXPECT_EQ(opened_decoder(decoder, cut), by_libjpeg);
    const LibjpegAlone alone = decode_by_libjpeg_alone(cut);
    EXPECT_FALSE(alone.decoded.is_ok());
    EXPECT_EQ(difference_from_libjpeg(decoder, cut, alone, {0, 0, 40, 30}), "");
  }
}

TEST(ProgressiveJpeg, ScansInAnotherOrderOfComponentsAreJudgedAsByLibjpegTurbo) {
  const Bytes sound = progressive(baseline(own_samplings[0], 35, 41, 3),
                                  testing::successive_approximation(3, 1), 0);
  const Bytes header = {std::byte{0xFF}, std::byte{0xDA}, std::byte{0}, std::byte{12},
                        std::byte{3}};
  const auto first = std::search(sound.begin(), sound.end(), header.begin(), header.end());
  const auto second = std::search(first + 1, sound.end(), header.begin(), header.end());
  ASSERT_NE(second, sound.end());
  std::array<std::ptrdiff_t, 3> order{0, 1, 2};
  int accepted = 0;
  do {
    Bytes encoded = sound;
    for (std::ptrdiff_t n = 0; n < 3; ++n)
      encoded[static_cast<std::size_t>(second - sound.begin() + 5 + 2 * n)] =
          *(second + 5 + 2 * order[static_cast<std::size_t>(n)]);
    const LibjpegAlone alone = decode_by_libjpeg_alone(encoded);
    accepted += alone.checked.is_ok() ? 1 : 0;
    JpegDecoder decoder;
    ASSERT_TRUE(decoder.open(encoded).is_ok());
    EXPECT_EQ(difference_from_libjpeg(decoder, encoded, alone, {0, 0, 35, 41}), "")
        << order[0] << order[1] << order[2];
    EXPECT_EQ(difference_of_check(decoder, encoded, alone), "");
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(accepted, 1);
}

TEST(ProgressiveJpeg, OtherBytesBetweenScansGoToLibjpegTurbo) {
  JpegDecoder decoder;
  const Bytes encoded = progressive(baseline(own_samplings[0], 40, 30, 6), {});
  const Bytes comment = {std::byte{0xFF}, std::byte{0xFE}, std::byte{0}, std::byte{2}};
  for (const std::size_t marker : testing::later_markers(encoded)) {
    for (const Bytes& inserted : {comment, Bytes(1, std::byte{0xFF}), Bytes(2, std::byte{0})}) {
      Bytes changed = encoded;
      changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(marker), inserted.begin(),
                     inserted.end());
      const LibjpegAlone alone = decode_by_libjpeg_alone(changed);
      EXPECT_EQ(difference_from_libjpeg(decoder, changed, alone, {0, 0, 40, 30}), "");
      EXPECT_THAT(decoder.header().decoder, ::testing::StartsWith("libjpeg-turbo"));
      EXPECT_EQ(difference_of_check(decoder, changed, alone), "");
    }
  }
}

TEST(ProgressiveJpeg, LowerResolutionsEqualThoseOfTheBaselineFile) {
  Random random(7, 0);
  JpegDecoder decoder;
  JpegDecoder other;
  for (const Sampling& sampling : own_samplings)
    for (const int reduction : {2, 4, 8}) {
      SCOPED_TRACE(std::string(sampling.name) + ", 1/" + std::to_string(reduction));
      const Bytes original = baseline(sampling, 131, 117, random());
      const Bytes encoded = progressive(original, {});
      const auto reduced = [&](int side) { return (side + reduction - 1) / reduction; };
      const Region region = any_region(random, reduced(131), reduced(117));
      PixelView ours;
      PixelView expected;
      ASSERT_TRUE(decoder.open(encoded).is_ok());
      ASSERT_TRUE(decoder.decode_reduced(region, reduction, ours).is_ok());
      EXPECT_THAT(decoder.header().decoder, ::testing::StartsWith("millrace (reduced"));
      ASSERT_TRUE(other.open(original).is_ok());
      ASSERT_TRUE(other.decode_reduced(region, reduction, expected).is_ok());
      for (int row = 0; row < region.height; ++row)
        ASSERT_EQ(std::memcmp(ours.pixels + static_cast<std::size_t>(row) * ours.stride,
                              expected.pixels + static_cast<std::size_t>(row) * expected.stride,
                              static_cast<std::size_t>(region.width) * 3),
                  0)
            << row;
    }
}

TEST(ProgressiveJpeg, LimitsHoldAsBefore) {
  const Bytes encoded = progressive(baseline(own_samplings[0], 100, 80, 8), {});
  const auto reason_of = [&](const DecodeLimits& limits) {
    JpegDecoder decoder(std::make_shared<DecodeBudget>(limits));
    EXPECT_TRUE(decoder.open(encoded).is_ok());
    PixelView view;
    const std::string reason = decoder.decode({0, 0, 100, 80}, view).reason();
    return reason + "|" + decoder.header().decoder;
  };
  EXPECT_EQ(reason_of({.max_scan_pixels = 80'000}), std::string("|") + by_stages);
  EXPECT_EQ(reason_of({.max_scan_pixels = 79'999}),
            "10 scans or more of 100 x 80 pixels; at most 79999 pixels of all scans are decoded "
            "(max_scan_pixels)|" +
                std::string(by_libjpeg));
}

// The stages take more memory than libjpeg-turbo. It decodes the images for which there is only
// enough for itself.
TEST(ProgressiveJpeg, LittleMemoryIsLeftToLibjpegTurbo) {
  constexpr int side = 3000;
  const testing::Image grey{side, side, 1, std::vector<std::uint8_t>(side * side, 77)};
  const Bytes encoded =
      encode(grey, {.h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}, .scans = Encoding::Scans::progressive});
  PixelView view;
  const auto decoder_with = [&](std::uint64_t bytes) -> std::string {
    const auto budget = std::make_shared<DecodeBudget>(
        DecodeLimits{.max_pixels_per_byte = 10'000, .max_decode_bytes = bytes});
    JpegDecoder decoder(budget);
    const Status opened = decoder.open(encoded);
    if (!opened.is_ok()) return opened.reason();
    EXPECT_TRUE(decoder.decode({0, 0, side, side}, view).is_ok());
    const std::string name = decoder.header().decoder;
    decoder.close();
    const DecodeBudget::Reservation all = budget->take(budget->limits().max_decode_bytes);
    return name;
  };
  // libjpeg-turbo: 2 bytes for each coefficient, 3 for each pixel.
  const std::uint64_t by_libjpeg_bytes = std::uint64_t{5} * side * side;
  EXPECT_EQ(decoder_with(by_libjpeg_bytes * 3 / 2), by_stages);
  EXPECT_EQ(decoder_with(by_libjpeg_bytes), by_libjpeg);
  EXPECT_THAT(decoder_with(by_libjpeg_bytes - 1), ::testing::HasSubstr("max_decode_bytes"));
}

}  // namespace
}  // namespace millrace
