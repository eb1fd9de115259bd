// SPDX-License-Identifier: Apache-2.0
//
// A process in which one instruction set gives wrong weights (resample/wrong_bilinear.cpp).
#include <gmock/gmock.h>
#include <millrace/detail/process_warnings.h>
#include <millrace/detail/vector_checks.h>
#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>

#include "augment/jpeg_dataset.h"
#include "augment/resample/vector_targets.h"
#include "pixels/pixel_check.h"
#include "resample/pass_check.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using namespace testing;

TEST(WrongInstructionSet, IsNotUsedToResampleAndTheReportWarnsOfIt) {
  if (vector_targets().size() == 1) GTEST_SKIP() << "one instruction set alone is compiled";
  auto pipeline =
      Pipeline(std::make_shared<JpegDataset>(), image_transform(Recipe::eval(24)),
               std::make_shared<HostDevice>(), {.batch_size = 4, .seed = 1, .epochs = 1});
  EXPECT_TRUE(pipeline.next());
  EXPECT_EQ(resample_checksum(), right_resample_checksum);
  EXPECT_EQ(pixels_checksum(), right_pixels_checksum);

  const InstructionSets sets = checked_instruction_sets();
  ASSERT_THAT(sets.wrong, Not(IsEmpty()));
  EXPECT_THAT(sets.wrong, Not(Contains(sets.used)));
  EXPECT_THAT(pipeline.report().warnings,
              Contains(AllOf(StartsWith("instruction set " + sets.wrong.front()),
                             HasSubstr(": wrong pixels in the self-check (Highway "),
                             HasSubstr("; " + sets.used + " is used"))));
  EXPECT_EQ(process_warnings().size(), 1U);
}

}  // namespace
}  // namespace millrace
