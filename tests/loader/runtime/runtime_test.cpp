// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/runtime.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "support/affinity.h"
#include "support/fake_job.h"
#include "support/small_run.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::eventually;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Meeting;
using testing::own_cpus;

/// A machine of `nodes` nodes that differs from this one.
Topology made_up(unsigned nodes) {
  return synthetic_topology("pack:" + std::to_string(nodes) + " [numa] core:1 pu:1");
}

/// Processors that do not exist, as if they were this machine's.
Topology impossible() { return {.nodes = {{4, {100000, 100001}}}, .usable_cpus = 2}; }

TEST(Runtime, HasAWorkerPerCoreByDefault) {
  const auto runtime = make_runtime({.launch_cores = 0});
  EXPECT_EQ(runtime->workers(), runtime->topology().usable_cpus);
  EXPECT_EQ(runtime->concurrency(), runtime->workers());
  EXPECT_GE(runtime->pools().size(), 1U);
  EXPECT_LE(runtime->pools().size(), runtime->topology().nodes.size());
}

TEST(Runtime, HasAsManyWorkersAsAskedForWithNumbersOfTheirOwn) {
  for (const unsigned workers : {1U, 2U, 3U, 5U}) {
    const Runtime runtime({.workers = workers});
    EXPECT_EQ(runtime.workers(), workers);
    std::mutex mutex;
    std::set<unsigned> numbers;
    Meeting meeting(workers);
    std::atomic<unsigned> ended{0};
    unsigned in_pools = 0;
    for (const auto& pool : runtime.pools()) {
      EXPECT_GE(pool->workers(), 1U);
      in_pools += pool->workers();
      pool->submit(&meeting, testing::job(pool->workers(), [&](std::size_t, unsigned worker) {
        EXPECT_TRUE(meeting.meet());
        {
          std::lock_guard lock(mutex);
          numbers.insert(worker);
        }
        ++ended;
      }));
    }
    EXPECT_EQ(in_pools, workers);
    ASSERT_TRUE(eventually([&] { return ended == workers; }));
    EXPECT_EQ(numbers.size(), workers);
    EXPECT_EQ(*numbers.rbegin(), workers - 1);
  }
}

TEST(Runtime, BindsWorkersToTheirNode) {
  const Runtime runtime({.workers = 2});
  for (const auto& pool : runtime.pools()) {
    if (!pool->bound()) GTEST_SKIP() << "this machine does not let threads be bound";
    std::mutex mutex;
    std::vector<std::vector<int>> seen;
    pool->submit(&mutex, testing::job(8, [&](std::size_t, unsigned) {
      std::lock_guard lock(mutex);
      seen.push_back(own_cpus());
    }));
    ASSERT_TRUE(eventually([&] {
      std::lock_guard lock(mutex);
      return seen.size() == 8;
    }));
    for (const auto& cpus : seen)
      EXPECT_TRUE(std::any_of(runtime.topology().nodes.begin(), runtime.topology().nodes.end(),
                              [&](const NumaNode& node) { return node.cpus == cpus; }));
  }
}

TEST(Runtime, LeavesWorkersFreeWhenAsked) {
  const Runtime runtime({.workers = 2, .numa = Numa::off});
  for (const auto& pool : runtime.pools()) EXPECT_FALSE(pool->bound());
}

TEST(Runtime, HasAPoolPerNodeOfTheTopologyItIsGiven) {
  for (const unsigned nodes : {1U, 2U, 8U}) {
    Runtime runtime({.topology = made_up(nodes)});
    EXPECT_EQ(runtime.topology().nodes.size(), nodes);
    ASSERT_EQ(runtime.pools().size(), nodes);
    for (const auto& pool : runtime.pools()) EXPECT_EQ(pool->workers(), 1U);
    EXPECT_THAT(runtime.placement_notes(), Contains(HasSubstr(std::to_string(nodes) + " worker")));
    std::atomic<unsigned> ended{0};
    for (const auto& pool : runtime.pools())
      pool->submit(&ended, testing::job(3, [&](std::size_t, unsigned) { ++ended; }));
    EXPECT_TRUE(eventually([&] { return ended == 3 * nodes; }));
  }
}

TEST(Runtime, TakesItsRanksShareAlone) {
  const Runtime runtime({.local_rank = 1, .local_world = 2, .topology = made_up(8)});
  EXPECT_EQ(runtime.workers(), 4U);
  EXPECT_EQ(runtime.topology().nodes.front().number, 4);
  EXPECT_THAT(runtime.placement_notes(), Contains(HasSubstr("rank 1 of 2")));
}

TEST(Runtime, SaysWhatIsLeftFreeForLaunches) {
  Topology machine = made_up(4);
  machine.devices = {{.address = "0000:41:00.0", .node = 2, .can_launch_kernels = true}};
  const Runtime runtime({.topology = machine});
  EXPECT_EQ(runtime.workers(), 3U);
  EXPECT_EQ(runtime.launch_cores(), 1U);
  EXPECT_THAT(runtime.placement_notes(), Contains(HasSubstr("0000:41:00.0")));
}

TEST(Runtime, DoesNotBindToAMadeUpMachineAndSaysSo) {
  const Runtime runtime({.topology = made_up(8)});
  for (const auto& pool : runtime.pools()) EXPECT_FALSE(pool->bound());
  const std::vector<std::string> warnings = runtime.warnings();
  ASSERT_EQ(warnings.size(), 8U);
  EXPECT_THAT(warnings[5],
              AllOf(HasSubstr("node 5 are not bound to its processors 5"), HasSubstr("synthetic")));
}

TEST(Runtime, SaysWhyWorkersCouldNotBeBound) {
  const Runtime runtime({.topology = impossible()});
  EXPECT_EQ(runtime.workers(), 2U);
  EXPECT_FALSE(runtime.pools()[0]->bound());
  EXPECT_THAT(
      runtime.warnings(),
      ElementsAre(
          "the workers of node 4 are not bound to its processors 100000-100001: Invalid argument"));
}

TEST(Runtime, FailsWhereBindingIsRequiredAndImpossible) {
  for (const auto& [machine, node, reason] :
       {std::tuple(impossible(), "node 4", "Invalid argument"),
        std::tuple(made_up(2), "node 0", "synthetic")}) {
    const Error error = testing::error_of(
        [&, &machine = machine] { Runtime({.numa = Numa::require, .topology = machine}); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("require"), HasSubstr(node), HasSubstr(reason)));
  }
  EXPECT_EQ(Runtime({.numa = Numa::off, .topology = made_up(2)}).warnings(),
            std::vector<std::string>());
}

TEST(Runtime, IsBoundWhereThatIsRequired) {
  const Runtime prefers({.workers = 1});
  if (!prefers.pools()[0]->bound()) GTEST_SKIP() << "this machine does not let threads be bound";
  const Runtime requires_it({.workers = 1, .numa = Numa::require});
  EXPECT_TRUE(requires_it.pools()[0]->bound());
  EXPECT_EQ(requires_it.pools()[0]->binding_error(), "");
}

TEST(Runtime, WarnsOfMoreWorkersThanCores) {
  const unsigned cores = read_topology().usable_cpus;
  EXPECT_THAT(Runtime({.workers = cores, .numa = Numa::off}).warnings(), IsEmpty());
  EXPECT_THAT(Runtime({.workers = cores + 1, .numa = Numa::off}).warnings(),
              ElementsAre(HasSubstr("oversubscribed: " + std::to_string(cores + 1) +
                                    " workers on " + std::to_string(cores))));
}

TEST(Runtime, WarnsOfWorkersOfOtherRuntimes) {
  const unsigned cores = read_topology().usable_cpus;
  const Runtime first({.workers = cores, .numa = Numa::off});
  EXPECT_THAT(first.warnings(), IsEmpty());
  {
    const Runtime second({.workers = 1, .numa = Numa::off});
    for (const auto* one : {&first, &second})
      EXPECT_THAT(one->warnings(),
                  ElementsAre(AllOf(HasSubstr("has " + std::to_string(cores + 1) + " workers on"),
                                    HasSubstr("share one runtime"))));
  }
  EXPECT_TRUE(eventually([&] { return first.warnings().empty(); }));
}

TEST(Runtime, SpreadsItsConcurrencyOverThePools) {
  Runtime runtime({.workers = 3});
  for (const unsigned concurrency : {0U, 1U, 2U, 3U}) {
    runtime.set_concurrency(concurrency);
    EXPECT_EQ(runtime.concurrency(), concurrency);
  }
  runtime.set_concurrency(50);
  EXPECT_EQ(runtime.concurrency(), 3U);
}

}  // namespace
}  // namespace millrace
