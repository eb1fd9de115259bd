// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/worker_pool.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace millrace::testing {

/// A job from a function of item and worker.
class FunctionJob final : public Job {
 public:
  using Function = std::function<void(std::size_t, unsigned)>;

  FunctionJob(std::size_t items, Function function)
      : items_(items), function_(std::move(function)) {}
  std::size_t items() const override { return items_; }
  void run(std::size_t item, unsigned worker) override { function_(item, worker); }

 private:
  std::size_t items_;
  Function function_;
};

inline std::shared_ptr<Job> job(std::size_t items, FunctionJob::Function function) {
  return std::make_shared<FunctionJob>(items, std::move(function));
}

/// Objects whose addresses serve as owners of jobs.
inline constexpr int owner = 1;
inline constexpr int other_owner = 2;

}  // namespace millrace::testing
