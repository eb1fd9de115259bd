// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <millrace/detail/worker_pool.h>
#include <sched.h>
#include <tbb/parallel_for.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "support/affinity.h"
#include "support/fake_job.h"
#include "support/waiting.h"

namespace millrace::testing {

/// A test on the simulated machine of numa_vm.sh: node 0 has the processors 0 and 1, node 1 has 2
/// and 3. It is skipped on other machines.
class OnTwoNodes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("MILLRACE_NUMA_VM") == nullptr)
      GTEST_SKIP() << "needs a machine with two NUMA nodes: bash tests/numa_vm.sh PROGRAM";
  }
};

inline std::set<int> cpus_of_node(int node) { return {2 * node, 2 * node + 1}; }

/// Processors on which the items of a pool ran.
struct Whereabouts {
  /// Processors that the threads were bound to.
  std::set<std::vector<int>> bindings;
  /// Processors on which they ran.
  std::set<int> seen;
  /// Processors on which a parallel algorithm inside an item ran.
  std::set<int> seen_inside;
  std::set<unsigned> workers;
};

/// Gives every worker of the pools an item at the same time, with more threads than the machine has
/// processors, and records where they run.
inline std::vector<Whereabouts> watch(const std::vector<std::unique_ptr<WorkerPool>>& pools) {
  constexpr int looks = 300;
  std::mutex mutex;
  std::vector<Whereabouts> result(pools.size());
  std::size_t workers = 0;
  for (const auto& pool : pools) workers += pool->workers();
  Meeting meeting(workers);
  std::size_t ended = 0;
  for (std::size_t number = 0; number < pools.size(); ++number)
    pools[number]->submit(&mutex,
                          job(pools[number]->workers(),
                              [&, number](std::size_t, unsigned worker) {
                                EXPECT_TRUE(meeting.meet());
                                std::set<int> seen;
                                for (int look = 0; look < looks; ++look) {
                                  seen.insert(sched_getcpu());
                                  sched_yield();
                                }
                                std::set<int> seen_inside;
                                std::mutex inside;
                                tbb::parallel_for(0, looks, [&](int) {
                                  std::lock_guard lock(inside);
                                  seen_inside.insert(sched_getcpu());
                                });
                                std::lock_guard lock(mutex);
                                result[number].bindings.insert(own_cpus());
                                result[number].seen.merge(seen);
                                result[number].seen_inside.merge(seen_inside);
                                result[number].workers.insert(worker);
                                ++ended;
                              }),
                          Help::never);
  EXPECT_TRUE(eventually([&] {
    std::lock_guard lock(mutex);
    return ended == workers;
  }));
  return result;
}

}  // namespace millrace::testing
