// SPDX-License-Identifier: Apache-2.0
#include "measure/machine/machine.h"

#include <gmock/gmock.h>
#include <hwloc.h>

#include <nlohmann/json.hpp>

namespace millrace::cli {
namespace {

// The version of its API, 2.8.0, differs.
TEST(Machine, NamesTheVersionOfHwlocItself) {
  EXPECT_THAT(describe_machine({}).libraries,
              ::testing::Contains(::testing::Pair("hwloc", HWLOC_VERSION)));
}

TEST(Machine, KnowsItsCoresAndCaches) {
  const Machine machine =
      describe_machine(synthetic_topology("pack:2 [numa] l3:2(size=16MB) core:4 pu:2"));
  EXPECT_EQ(machine.cores, 32U);
  EXPECT_EQ(machine.physical_cores, 16U);
  EXPECT_EQ(machine.threads_per_core, 2U);
  EXPECT_EQ(machine.last_level_cache_bytes, 64'000'000U);
  const auto json = facts_json(machine);
  EXPECT_EQ(json.at("physical_cores"), 16);
  EXPECT_EQ(json.at("threads_per_core"), 2);
  EXPECT_THAT(fact_rows(machine),
              ::testing::Contains(::testing::ElementsAre("Last-level caches", "64.0 MB")));
}

TEST(Machine, SaysWhatIsNotKnown) {
  const Machine machine = describe_machine({});
  EXPECT_TRUE(facts_json(machine).at("physical_cores").is_null());
  EXPECT_TRUE(facts_json(machine).at("last_level_cache_mb").is_null());
  EXPECT_THAT(fact_rows(machine),
              ::testing::Contains(::testing::ElementsAre("Last-level caches", "unknown")));
}

}  // namespace
}  // namespace millrace::cli
