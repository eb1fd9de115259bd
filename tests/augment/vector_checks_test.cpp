// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <millrace/detail/vector_checks.h>

#include "augment/resample/vector_targets.h"
#include "pixels/pixel_check.h"
#include "resample/pass_check.h"

namespace millrace {
namespace {

using testing::name_of;
using testing::OnTarget;
using testing::vector_targets;

TEST(VectorChecks, HaveTheStoredChecksumsOnEveryInstructionSet) {
  for (const std::int64_t target : vector_targets()) {
    SCOPED_TRACE(name_of(target));
    const OnTarget on(target);
    EXPECT_EQ(resample_checksum(), right_resample_checksum) << std::hex << resample_checksum();
    EXPECT_EQ(pixels_checksum(), right_pixels_checksum) << std::hex << pixels_checksum();
  }
}

TEST(VectorChecks, ARightSetIsUsed) {
  EXPECT_TRUE(checked_instruction_sets().wrong.empty());
  EXPECT_TRUE(jpeg::stages.checked && resample_passes.checked && pixel_passes.checked);
}

}  // namespace
}  // namespace millrace
