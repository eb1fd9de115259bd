// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/runtime.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "fake_job.h"
#include "waiting.h"

namespace millrace {
namespace {

using testing::eventually;
using testing::Meeting;

/// The processors that the calling thread may use.
std::vector<int> own_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  return cpus;
}

void restrict_to(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

TEST(Topology, HasUsableNodesAndCores) {
  const Topology topology = read_topology();
  ASSERT_FALSE(topology.nodes.empty());
  std::set<int> cpus;
  std::size_t count = 0;
  for (const NumaNode& node : topology.nodes) {
    EXPECT_FALSE(node.cpus.empty()) << "node " << node.number;
    cpus.insert(node.cpus.begin(), node.cpus.end());
    count += node.cpus.size();
  }
  EXPECT_EQ(cpus.size(), count) << "a processor is of two nodes";
  EXPECT_TRUE(std::is_sorted(topology.nodes.begin(), topology.nodes.end(),
                             [](const NumaNode& a, const NumaNode& b) { return a.number < b.number; }));
  EXPECT_GE(topology.cores, 1U);
  EXPECT_LE(topology.cores, count);
  const std::vector<int> own = own_cpus();
  EXPECT_TRUE(std::includes(own.begin(), own.end(), cpus.begin(), cpus.end())) << "a processor that is not ours";
}

TEST(Topology, SeesFewerCoresInARestrictedProcess) {
  const std::vector<int> cpus = own_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "needs two processors";
  restrict_to({cpus.back()});
  std::FILE* output = popen(MILLRACE_PRINT_TOPOLOGY, "r");  // a child has its parent's processors
  restrict_to(cpus);
  ASSERT_NE(output, nullptr);
  unsigned cores = 0;
  unsigned counted = 0;
  unsigned workers = 0;
  EXPECT_EQ(std::fscanf(output, "%u %u %u", &cores, &counted, &workers), 3);
  EXPECT_EQ(pclose(output), 0);
  EXPECT_EQ(cores, 1U);
  EXPECT_EQ(counted, 1U);
  EXPECT_EQ(workers, 1U);
}

TEST(Runtime, HasAWorkerPerCoreByDefault) {
  const auto runtime = make_runtime();
  EXPECT_EQ(runtime->workers(), runtime->topology().cores);
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
  const Runtime runtime({.workers = 2, .bind = false});
  for (const auto& pool : runtime.pools()) EXPECT_FALSE(pool->bound());
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
