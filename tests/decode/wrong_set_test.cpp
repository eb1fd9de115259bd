// SPDX-License-Identifier: Apache-2.0
//
// A process in which one instruction set gives wrong colours (jpeg/wrong_colour.cpp).
#include <gmock/gmock.h>
#include <millrace/detail/instruction_sets.h>
#include <millrace/detail/process_warnings.h>
#include <millrace/image_decoder.h>

#include <algorithm>
#include <vector>

#include "augment/resample/vector_targets.h"
#include "stage_check.h"
#include "support/jpeg_samples.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using namespace testing;

/// Decodes through the public interface.
std::vector<std::uint8_t> decoded(const Bytes& encoded) {
  const auto decoder = make_image_decoder();
  PixelView view;
  EXPECT_TRUE(decoder->open(encoded).is_ok());
  EXPECT_TRUE(decoder->decode({0, 0, 50, 40}, view).is_ok());
  EXPECT_STREQ(decoder->header().decoder, "millrace");
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < view.height; ++y)
    std::copy_n(view.pixels + static_cast<std::size_t>(y) * view.stride, 3 * 50,
                std::back_inserter(pixels));
  return pixels;
}

TEST(WrongInstructionSet, IsNotUsedToDecode) {
  if (vector_targets().size() == 1) GTEST_SKIP() << "one instruction set alone is compiled";
  const std::int64_t best = hwy::SupportedTargets() & HWY_TARGETS;
  const Bytes encoded = encode(noise(50, 40, 3), {});
  EXPECT_EQ(decoded(encoded), reference_decode(encoded).pixels);
  EXPECT_EQ(jpeg::stages_checksum(), jpeg::right_stages_checksum);

  const InstructionSets sets = instruction_sets();
  ASSERT_THAT(sets.wrong, Not(IsEmpty()));
  EXPECT_THAT(sets.wrong, Not(Contains(sets.used)));
  EXPECT_TRUE(jpeg::stages.checked);
  EXPECT_THAT(process_warnings(),
              ElementsAre(AllOf(StartsWith("instruction set " + sets.wrong.front()),
                                HasSubstr(": wrong pixels in the self-check (Highway "),
                                HasSubstr("; " + sets.used + " is used"))));
  EXPECT_EQ(hwy::SupportedTargets() & best & -best, 0);
}

}  // namespace
}  // namespace millrace
