// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/worker_pool.h>
#include <millrace/runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <future>
#include <memory>
#include <utility>

namespace millrace::cli {

/// Half-open range [begin, end) of indices.
struct IndexRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Length of a range, at most `longest`: short enough that all workers end at about the same time.
inline std::uint64_t range_length(std::uint64_t count, const Runtime& runtime,
                                  std::uint64_t longest) {
  constexpr std::uint64_t ranges_per_worker = 64;
  return std::clamp<std::uint64_t>(count / (ranges_per_worker * runtime.workers()), 1, longest);
}

/// A job that does the work on one range. It owns all its data, so that it may outlive the caller.
template <typename Make, typename Result>
class RangeJob final : public Job {
 public:
  RangeJob(IndexRange range, std::shared_ptr<const Make> make)
      : range_(range), make_(std::move(make)) {}

  std::size_t items() const override { return 1; }
  void run(std::size_t, unsigned worker) override {
    try {
      made_.set_value((*make_)(range_, worker));
    } catch (...) {
      made_.set_exception(std::current_exception());
    }
  }

  /// Waits for the result; call it once. Rethrows the exceptions of the work.
  Result take() { return made_.get_future().get(); }

 private:
  IndexRange range_;
  std::shared_ptr<const Make> make_;
  std::promise<Result> made_;
};

/// Runs work over the numbers 0 .. count-1 on the runtime's workers, in ranges of `range_length`.
/// Calls `make(range, worker)` on a worker for each range, and `take(made)` with the result on this
/// thread, in the order of the ranges. When `take` returns false before the last range, it ends
/// early and returns false. Rethrows the exceptions of both. `make` must own all its data: a call
/// may still run after this has returned.
template <typename Make, typename Take>
bool over_ranges(Runtime& runtime, std::uint64_t count, std::uint64_t range_length, Make make,
                 const Take& take) {
  using Result = decltype(make(IndexRange{}, 0U));
  using Work = RangeJob<Make, Result>;
  const auto shared_make = std::make_shared<const Make>(std::move(make));
  const auto& pools = runtime.pools();

  // Cancels the jobs that have not begun, also if an exception leaves this function.
  struct Cancel {
    Runtime& runtime;
    ~Cancel() {
      for (const auto& pool : runtime.pools()) pool->cancel(this, std::chrono::seconds(1));
    }
  } owner{runtime};

  std::deque<std::pair<std::shared_ptr<Work>, WorkerPool*>> begun;
  std::uint64_t next = 0;
  const auto begin_on = [&](WorkerPool* pool) {
    if (next == count) return;
    const std::uint64_t end = next + std::min(range_length, count - next);
    begun.emplace_back(std::make_shared<Work>(IndexRange{next, end}, shared_make), pool);
    next = end;
    pool->submit(&owner, begun.back().first);
  };
  // Begins enough jobs to keep all workers busy. Their number bounds the memory.
  for (const auto& pool : pools)
    for (unsigned ahead = 0; ahead < 4 * pool->workers(); ++ahead) begin_on(pool.get());
  while (!begun.empty()) {
    const auto [job, pool] = std::move(begun.front());
    begun.pop_front();
    const bool goes_on = take(job->take());
    if (!goes_on) return begun.empty() && next == count;
    begin_on(pool);
  }
  return true;
}

}  // namespace millrace::cli
