// SPDX-License-Identifier: Apache-2.0
//
// Our own decoder of progressive JPEGs, compared with libjpeg-turbo: which images it leaves to it,
// equal pixels on every instruction set, and equal results for damaged files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/random.h>

#include <cstring>
#include <string>

#include "augment/resample/vector_targets.h"
#include "decode/jpeg/damage.h"
#include "decode/jpeg/libjpeg_alone.h"
#include "decode/jpeg/regions.h"
#include "decode/jpeg/scan_scripts.h"
#include "jpeg/decoder/jpeg_decoder.h"
#include "support/jpeg_samples.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::any_region;
using testing::Bytes;
using testing::decode_by_libjpeg_alone;
using testing::difference_from_libjpeg;
using testing::difference_of_check;
using testing::encode;
using testing::Encoding;
using testing::LibjpegAlone;
using testing::noise;
using testing::progressive;
using testing::Scan;
using testing::Script;

constexpr const char* by_stages = "millrace (progressive)";
constexpr const char* by_libjpeg = "libjpeg-turbo (progressive)";

std::string opened_decoder(JpegDecoder& decoder, const Bytes& encoded) {
  EXPECT_TRUE(decoder.open(encoded).is_ok());
  return decoder.header().decoder;
}

/// The own_samplings that the stages decode; grey has one component.
struct Sampling {
  const char* name;
  int h, v, components;
};
constexpr Sampling own_samplings[] = {{"4:4:4", 1, 1, 3},
                                      {"4:2:2", 2, 1, 3},
                                      {"4:2:0", 2, 2, 3},
                                      {"4:4:0", 1, 2, 3},
                                      {"grey", 2, 2, 1}};

Bytes baseline(const Sampling& sampling, int width, int height, unsigned seed, int quality = 90) {
  return encode(noise(width, height, seed, sampling.components),
                {.h = {sampling.h, 1, 1, 1}, .v = {sampling.v, 1, 1, 1}, .quality = quality});
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

}  // namespace
}  // namespace millrace
