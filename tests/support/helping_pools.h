// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/worker_pool.h>

#include <memory>
#include <vector>

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

}  // namespace millrace::testing
