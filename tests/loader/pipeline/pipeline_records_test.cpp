// SPDX-License-Identifier: Apache-2.0
//
// Tests of the fields "index" and "valid", which every batch contains.
#include <gtest/gtest.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <tuple>

#include "support/small_run.h"

namespace millrace {
namespace {

class PipelineRecords : public ::testing::TestWithParam<std::tuple<bool, std::size_t>> {};
INSTANTIATE_TEST_SUITE_P(Ways, PipelineRecords,
                         ::testing::Combine(::testing::Bool(), ::testing::Values(1U, 3U)));

TEST_P(PipelineRecords, TravelWithTheBatch) {
  const auto [copies, micro_batches] = GetParam();
  for (const BadRecords policy : {BadRecords::mark, BadRecords::replace}) {
    testing::SmallRun run(44, copies);
    run.options.slots.micro_batches = micro_batches;
    run.options.bad_records = policy;
    run.options.last_batch = LastBatch::pad;
    run.transform->on_end = [](const Record& record) {
      return record.index() % 5 == 2 ? Status::bad("planted") : Status::ok();
    };
    Pipeline pipeline = run.pipeline();
    std::size_t invalid = 0;
    while (const Batch batch = pipeline.next()) {
      const auto index = batch["index"].as<std::uint64_t>();
      const auto valid = batch["valid"].as<std::uint8_t>();
      EXPECT_TRUE(std::ranges::equal(index, batch.indices()));
      EXPECT_TRUE(std::ranges::equal(valid, batch.valid()));
      for (std::size_t sample = 0; sample < batch.size(); ++sample) {
        invalid += valid[sample] == 0 ? 1 : 0;
        if (policy == BadRecords::replace) {
          EXPECT_NE(index[sample] % 5, 2U);
        }
      }
    }
    EXPECT_GE(invalid, policy == BadRecords::mark ? 4U + 9U : 4U) << "padding and marked records";
  }
}

}  // namespace
}  // namespace millrace
