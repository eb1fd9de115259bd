// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <millrace/detail/worker_pool.h>

#include <functional>
#include <memory>
#include <vector>

#include "support/fake_job.h"
#include "support/waiting.h"

namespace millrace::testing {

/// Pools with the worker numbers 0 up that help each other.
struct Pools {
  explicit Pools(const std::vector<unsigned>& workers) {
    unsigned first = 0;
    std::vector<WorkerPool*> pointers;
    for (const unsigned count : workers) {
      pools.push_back(std::make_unique<WorkerPool>(first, count, std::vector<int>()));
      pointers.push_back(pools.back().get());
      first += count;
    }
    WorkerPool::help_each_other(pointers);
  }
  WorkerPool& operator[](std::size_t pool) { return *pools.at(pool); }

  std::vector<std::unique_ptr<WorkerPool>> pools;
};

/// Calls `change` while every active worker of the pool runs an item of `owner`. Reason: a worker
/// that is searching the other pools at that time may still take one of their items, whatever its
/// pool's concurrency.
inline void while_all_work(WorkerPool& pool, const std::function<void()>& change) {
  const auto gate = std::make_shared<Gate>();
  const OpensAtEnd opens(*gate);
  const auto pass = [gate](std::size_t, unsigned) { EXPECT_TRUE(gate->pass()); };
  const unsigned active = pool.concurrency();
  pool.submit(&owner, job(active, pass), Help::never);
  EXPECT_TRUE(eventually([&] { return gate->arrived() == active; }));
  change();
  gate->open();
  EXPECT_TRUE(pool.cancel(&owner, patience));
}

}  // namespace millrace::testing
