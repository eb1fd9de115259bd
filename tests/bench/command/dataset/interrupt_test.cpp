// SPDX-License-Identifier: Apache-2.0
#include "command/console/interrupt.h"

#include <gmock/gmock.h>

#include <csignal>
#include <cstdint>
#include <memory>

#include "command/dataset/inspect_survey.h"
#include "command/dataset/verify_run.h"
#include "support/fake_dataset.h"

namespace millrace::cli {
namespace {

using testing::MemoryDataset;

/// Records of which the `nth` read, from 1, sends SIGINT to the process.
std::shared_ptr<const Dataset> interrupting(std::uint64_t records, std::uint64_t nth) {
  auto dataset = std::make_shared<MemoryDataset>(records);
  dataset->on_read = [nth, all = dataset.get()](std::uint64_t) {
    if (all->reads() == nth) std::raise(SIGINT);
  };
  return dataset;
}

/// One worker reads the records one by one.
class Interrupted : public ::testing::Test {
 protected:
  Runtime runtime_{{.workers = 1}};
  const Interrupt interrupt_;

  VerifyResult verified(std::uint64_t records, std::uint64_t nth) {
    return verify(interrupting(records, nth), VerifyDepth::records, {}, runtime_, interrupt_);
  }
  /// The survey reads one more record first, to show its fields.
  Survey surveyed(std::uint64_t records, std::uint64_t nth) {
    return survey(interrupting(records, nth + 1), 0, runtime_, interrupt_);
  }
};

TEST_F(Interrupted, AfterItsLastRecordVerifyIsComplete) {
  const VerifyResult result = verified(1, 1);
  EXPECT_TRUE(interrupt_.requested());
  EXPECT_EQ(result.checked, 1U);
  EXPECT_FALSE(result.interrupted);
}

TEST_F(Interrupted, BeforeItsLastRecordVerifyIsIncomplete) {
  const VerifyResult result = verified(2, 1);
  EXPECT_EQ(result.checked, 1U);
  EXPECT_TRUE(result.interrupted);
}

TEST_F(Interrupted, AfterItsLastRecordASurveyIsComplete) {
  const Survey found = surveyed(1, 1);
  EXPECT_TRUE(interrupt_.requested());
  EXPECT_EQ(found.looked_at, 1U);
  EXPECT_FALSE(found.interrupted);
}

TEST_F(Interrupted, BeforeItsLastRecordASurveyIsIncomplete) {
  const Survey found = surveyed(2, 1);
  EXPECT_EQ(found.looked_at, 1U);
  EXPECT_TRUE(found.interrupted);
}

}  // namespace
}  // namespace millrace::cli
