// SPDX-License-Identifier: Apache-2.0
#include "stage_check.h"

#include <gtest/gtest.h>
#include <millrace/detail/instruction_sets.h>

#include <algorithm>
#include <cstdint>

#include "augment/resample/vector_targets.h"

namespace millrace::jpeg {
namespace {

using testing::name_of;
using testing::OnTarget;
using testing::vector_targets;

TEST(StageCheck, HasTheStoredChecksumOnEveryInstructionSet) {
  for (const std::int64_t target : vector_targets()) {
    SCOPED_TRACE(name_of(target));
    const OnTarget on(target);
    EXPECT_EQ(stages_checksum(), right_stages_checksum) << std::hex << stages_checksum();
  }
}

TEST(StageCheck, ARightSetIsUsedAndNoOneIsWarned) {
  choose_instruction_set(stages);
  EXPECT_TRUE(stages.checked);
  const InstructionSets sets = instruction_sets();
  std::int64_t best = vector_targets().front();  // better sets have lower bits
  for (const std::int64_t target : vector_targets()) best = std::min(best, target & -target);
  EXPECT_EQ(sets.used, hwy::TargetName(best));
  EXPECT_TRUE(sets.wrong.empty());
}

}  // namespace
}  // namespace millrace::jpeg
