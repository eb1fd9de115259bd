// SPDX-License-Identifier: Apache-2.0
//
// Our own decoder of baseline JPEGs, compared with libjpeg-turbo: which images it leaves to it,
// equal pixels on every instruction set, and equal results for damaged files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/random.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "augment/resample/vector_targets.h"
#include "decode/jpeg/damage.h"
#include "decode/jpeg/libjpeg_alone.h"
#include "decode/jpeg/regions.h"
#include "jpeg/decoder/jpeg_decoder.h"
#include "support/jpeg_samples.h"
#include "support/sanitizers.h"
#include "support/shared_data.h"

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

std::string decoder_of(JpegDecoder& decoder, const Bytes& encoded) {
  EXPECT_TRUE(decoder.open(encoded).is_ok());
  return decoder.header().decoder;
}

TEST(BaselineJpeg, SaysWhoDecodesWhat) {
  const std::map<std::string, std::string> expected = {
      {"4:4:4", "millrace"},
      {"4:2:2", "millrace"},
      {"4:2:0", "millrace"},
      {"4:4:0", "millrace"},
      {"4:4:4, restarts", "millrace"},
      {"4:2:0, restarts", "millrace"},
      {"low quality", "millrace"},
      {"4:1:1", "libjpeg-turbo (sampling factors)"},
      {"mixed", "libjpeg-turbo (sampling factors)"},
      {"4:2:0, arithmetic", "libjpeg-turbo (arithmetic coding)"},
      {"4:2:0, progressive", "millrace (progressive)"},
      {"4:2:0, a scan per component", "libjpeg-turbo (several scans)"},
      {"stored as RGB", "libjpeg-turbo (stored as RGB)"}};
  JpegDecoder decoder;
  std::size_t seen = 0;
  for (const Encoding& encoding : testing::encodings()) {
    const auto found = expected.find(encoding.name);
    if (found == expected.end()) continue;
    ++seen;
    EXPECT_EQ(decoder_of(decoder, encode(noise(40, 30, 1), encoding)), found->second)
        << encoding.name;
  }
  EXPECT_EQ(seen, expected.size());
  EXPECT_EQ(decoder_of(decoder, encode(noise(40, 30, 1, 1), {})), "millrace");
  EXPECT_EQ(decoder_of(decoder, encode(noise(40, 30, 1, 4), {.h = {1, 1, 1, 1}})),
            "libjpeg-turbo (four components)");
  EXPECT_EQ(decoder_of(decoder, encode(noise(4, 30, 1), {})), "libjpeg-turbo (narrow chroma)");
  EXPECT_EQ(decoder_of(decoder, testing::without(encode(noise(40, 30, 1), {}), 0xC4)),
            "libjpeg-turbo (no Huffman tables)");
}

TEST(BaselineJpeg, SaysWhenItDoubts) {
  JpegDecoder decoder;
  Bytes cut = encode(noise(64, 64, 2), {});
  cut.resize(cut.size() * 2 / 3);
  EXPECT_EQ(decoder_of(decoder, cut), "millrace");
  PixelView view;
  EXPECT_FALSE(decoder.decode({0, 0, 64, 64}, view).is_ok());
  EXPECT_STREQ(decoder.header().decoder, "libjpeg-turbo (doubtful data)");
  EXPECT_EQ(decoder_of(decoder, cut), "millrace");
  EXPECT_TRUE(decoder.decode({5, 5, 20, 11}, view).is_ok());
  EXPECT_STREQ(decoder.header().decoder, "millrace");
  EXPECT_EQ(decoder_of(decoder, cut), "millrace");
  EXPECT_FALSE(decoder.check().is_ok());
  EXPECT_STREQ(decoder.header().decoder, "libjpeg-turbo (doubtful data)");
}

/// Compares some regions on every instruction set.
void expect_same_on_every_target(const Bytes& encoded, Random& random, int regions) {
  const LibjpegAlone alone = decode_by_libjpeg_alone(encoded);
  for (const std::int64_t target : testing::vector_targets()) {
    SCOPED_TRACE(testing::name_of(target));
    const testing::OnTarget on(target);
    JpegDecoder decoder;
    ASSERT_EQ(decoder_of(decoder, encoded), "millrace");
    const Size size = decoder.header().size();
    ASSERT_EQ(difference_from_libjpeg(decoder, encoded, alone, {0, 0, size.width, size.height}),
              "");
    ASSERT_STREQ(decoder.header().decoder, "millrace");
    ASSERT_EQ(difference_of_check(decoder, encoded, alone), "");
    ASSERT_STREQ(decoder.header().decoder, "millrace");
    for (int n = 0; n < regions; ++n) {
      ASSERT_EQ(difference_from_libjpeg(decoder, encoded, alone,
                                        any_region(random, size.width, size.height)),
                "");
      ASSERT_STREQ(decoder.header().decoder, "millrace");
    }
  }
}

TEST(BaselineJpeg, EqualsLibjpegTurboOnEveryInstructionSet) {
  Random random(1, 0);
  JpegDecoder decoder;
  int compared = 0;
  for (Encoding encoding : testing::encodings()) {
    const Bytes probe = encode(noise(40, 30, 1), encoding);
    if (decoder_of(decoder, probe) != "millrace") continue;
    for (const auto& [width, height] :
         {std::pair(131, 117), std::pair(64, 48), std::pair(5, 7), std::pair(200, 1)})
      for (const int quality : {30, 75, 98, 100})
        for (const bool optimised : {false, true}) {
          SCOPED_TRACE(encoding.name + ", quality " + std::to_string(quality));
          encoding.quality = quality;
          encoding.optimised = optimised;
          expect_same_on_every_target(encode(noise(width, height, random()), encoding), random, 6);
          if (HasFatalFailure()) return;
          ++compared;
        }
  }
  EXPECT_GE(compared, 9 * 32);
}

TEST(BaselineJpeg, PhotographsEqualLibjpegTurboOnEveryInstructionSet) {
  MILLRACE_NEEDS_SHARED("data/photos");
  Random random(2, 0);
  int seen = 0;
  int compared = 0;
  for (const auto& path : testing::jpeg_files(testing::shared_dir() / "data/photos")) {
    if (seen++ % testing::one_in != 0) continue;
    SCOPED_TRACE(path.string());
    expect_same_on_every_target(testing::read_file(path), random, 20);
    if (HasFatalFailure()) return;
    ++compared;
  }
  EXPECT_EQ(compared, 500 / testing::one_in);
}

TEST(BaselineJpeg, DamageIsJudgedAsByLibjpegTurbo) {
  MILLRACE_NEEDS_LIBJPEG_OF_X86();
  Random random(3, 0);
  JpegDecoder decoder;
  const std::vector<Encoding> kinds = testing::encodings();
  int refused = 0;
  int sound = 0;
  for (int n = 0; n < 3000; ++n) {
    Encoding encoding = kinds[random() % kinds.size()];
    encoding.scans = Encoding::Scans::one;
    encoding.arithmetic = false;
    encoding.optimised = n % 2 == 0;
    encoding.quality = 20 + static_cast<int>(random() % 80);
    const Bytes encoded = damaged(encode(noise(70, 50, random()), encoding), random);
    if (!decoder.open(encoded).is_ok() || std::strcmp(decoder.header().decoder, "millrace") != 0)
      continue;
    const LibjpegAlone alone = decode_by_libjpeg_alone(encoded);
    const Size size = decoder.header().size();
    ASSERT_EQ(difference_from_libjpeg(decoder, encoded, alone, {0, 0, size.width, size.height}),
              "");
    ASSERT_EQ(difference_of_check(decoder, encoded, alone), "");
    for (int region = 0; region < 3; ++region)
      ASSERT_EQ(difference_from_libjpeg(decoder, encoded, alone,
                                        any_region(random, size.width, size.height)),
                "");
    ++(alone.checked.is_ok() ? sound : refused);
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(sound, 200);
}

/// Sets the steps of all quantisation tables.
void set_steps(Bytes& encoded, const std::function<int()>& step) {
  for (std::size_t at = 2; encoded[at + 1] != std::byte{0xDA};) {
    const std::size_t length = std::to_integer<std::size_t>(encoded[at + 2]) << 8 |
                               std::to_integer<std::size_t>(encoded[at + 3]);
    if (encoded[at + 1] == std::byte{0xDB})
      for (std::size_t table = at + 4; table < at + 2 + length; table += 65)
        for (std::size_t n = 1; n <= 64; ++n) encoded[table + n] = static_cast<std::byte>(step());
    at += 2 + length;
  }
}

TEST(BaselineJpeg, AbsurdCoefficientsWrapAroundAsInLibjpegTurbo) {
  MILLRACE_NEEDS_LIBJPEG_OF_X86();
  Random random(4, 0);
  JpegDecoder decoder;
  for (int n = 0; n < 600; ++n) {
    Encoding encoding{.name = "4:4:4", .h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}};
    encoding.quality = n % 3 == 0 ? 100 : 30 + n % 60;
    Bytes encoded = encode(noise(50, 41, random(), n % 2 == 0 ? 3 : 1), encoding);
    set_steps(encoded, [&] {
      return n % 4 == 0 ? 128 : n % 4 == 1 ? 255 : 1 + static_cast<int>(random() % 255);
    });
    const LibjpegAlone alone = decode_by_libjpeg_alone(encoded);
    ASSERT_EQ(decoder_of(decoder, encoded), "millrace");
    ASSERT_EQ(difference_from_libjpeg(decoder, encoded, alone, {0, 0, 50, 41}), "");
    ASSERT_STREQ(decoder.header().decoder, "millrace");
  }
}

TEST(BaselineJpeg, ACodeOfAllOnesIsRefusedAsByLibjpegTurbo) {
  Bytes encoded = encode(noise(40, 30, 1), {});
  // The table of AC coefficients has all codes of 16 bits but this one.
  const std::array segment{std::byte{0xFF}, std::byte{0xC4}, std::byte{0}, std::byte{0xB5},
                           std::byte{0x10}};
  const auto found = std::search(encoded.begin(), encoded.end(), segment.begin(), segment.end());
  ASSERT_NE(found, encoded.end());
  found[3] = std::byte{0xB6};
  found[5 + 15] = static_cast<std::byte>(std::to_integer<int>(found[5 + 15]) + 1);
  encoded.insert(found + 2 + 0xB5, std::byte{0x11});
  const LibjpegAlone alone = decode_by_libjpeg_alone(encoded);
  EXPECT_EQ(alone.decoded.reason(), "Bogus Huffman table definition");
  JpegDecoder decoder;
  EXPECT_EQ(difference_from_libjpeg(decoder, encoded, alone, {0, 0, 40, 30}), "");
  EXPECT_EQ(difference_of_check(decoder, encoded, alone), "");
}

}  // namespace
}  // namespace millrace
