// SPDX-License-Identifier: Apache-2.0
//
// Measurements of one of several ranks that share the host.
#include <gmock/gmock.h>
#include <millrace/topology.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "measure/bench/user_workload.h"

namespace millrace {
namespace {

using ::testing::Each;
using ::testing::Field;
using testing::UserWorkload;
using Json = nlohmann::json;

/// As many ranks as there are processors, so that the share of each is one. Each rank has records
/// for a batch at least.
class UserRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    cores_ = read_topology().usable_cpus;
    if (cores_ == 1) GTEST_SKIP() << "there is only one processor";
  }

  measure::Workload workload() {
    own_.dataset = std::make_shared<testing::MemoryDataset>(
        std::max<std::uint64_t>(own_.dataset->size(), cores_ * UserWorkload::batch_size));
    measure::Workload workload = own_.workload(std::make_shared<HostDevice>());
    workload.pipeline.ranks.this_process = {
        .rank = 1, .world = cores_, .local_rank = 1, .local_world = cores_};
    return workload;
  }

  unsigned cores_ = 0;

 private:
  UserWorkload own_;
};

unsigned workers_in(const std::string& json) {
  return Json::parse(json).at("options").at("workers").get<unsigned>();
}

TEST_F(UserRanks, BenchUsesARanksShare) {
  EXPECT_EQ(workers_in(measure::bench(workload(), {.warmup = 1, .batches = 3}).json), 1U);
}

TEST_F(UserRanks, OfALargeMachineHaveABatchEach) {
  cores_ = 250;
  EXPECT_EQ(workers_in(measure::bench(workload(), {.warmup = 1, .batches = 3}).json), 1U);
}

TEST_F(UserRanks, DiagnoseUsesARanksShare) {
  EXPECT_EQ(workers_in(measure::diagnose(workload(), {.rounds = 2, .batches = 3}).json), 1U);
}

TEST_F(UserRanks, TuneTriesARanksShare) {
  std::vector<measure::Setting> told;
  measure::tune(workload(), {.budget = std::chrono::milliseconds(100),
                             .on_run = [&](const auto& setting) { told.push_back(setting); }});
  EXPECT_THAT(told, ::testing::AllOf(::testing::Not(::testing::IsEmpty()),
                                     Each(Field(&measure::Setting::workers, 1U))));
}

}  // namespace
}  // namespace millrace
