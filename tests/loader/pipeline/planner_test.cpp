// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planning/planner.h"

#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <memory>
#include <vector>

namespace millrace {
namespace {

class Planning : public ::testing::Test {
 protected:
  static HostSlot planned(Planner& planner, std::uint64_t number) {
    HostSlot host;
    host.plan.number = number;
    planner.plan(host);
    return host;
  }
  std::vector<std::uint64_t> records(std::uint64_t first, std::uint64_t end) const {
    std::vector<std::uint64_t> positions;
    for (std::uint64_t position = first; position < end; ++position) positions.push_back(position);
    sampler->current()->draw(positions, positions);
    return positions;
  }

  const PipelineOptions options{.batch_size = 8, .epochs = 1, .last_batch = LastBatch::pad};
  const std::shared_ptr<RunSampler> sampler = std::make_shared<RunSampler>(Sampler(Order{}, 20, 7));
  const Schedule schedule{20, options};
};

TEST_F(Planning, SaysWhichRecordsABatchGets) {
  Planner planner(sampler, schedule);
  const HostSlot host = planned(planner, 1);
  EXPECT_EQ(host.plan.size, 8U);
  EXPECT_EQ(host.plan.position_after, 16U);
  EXPECT_EQ(host.records.indices, records(8, 16));
  EXPECT_EQ(host.positions.front(), 8U);
  EXPECT_THAT(host.records.valid, ::testing::Each(1));
}

TEST_F(Planning, PaddingIsNotValid) {
  Planner planner(sampler, schedule);
  const HostSlot host = planned(planner, 2);
  EXPECT_THAT(host.records.valid, ::testing::ElementsAre(1, 1, 1, 1, 0, 0, 0, 0));
  EXPECT_EQ(host.positions[4], 0U) << "the epoch's first samples fill it up";
}

TEST(ScheduleEnd, IsBehindTheLastBatchOrNever) {
  EXPECT_EQ(Schedule(20, {.batch_size = 8, .epochs = 2}).end(), 6U);
  EXPECT_EQ(Schedule(20, {.batch_size = 8}).end(), UINT64_MAX);
  EXPECT_EQ(Schedule(20, {.batch_size = 8, .epochs = UINT64_MAX}).end(), UINT64_MAX);
}

}  // namespace
}  // namespace millrace
