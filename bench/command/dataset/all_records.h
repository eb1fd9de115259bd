// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/detail/worker_pool.h>
#include <millrace/runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <future>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace millrace::cli {

/// A job that does the work on some numbers. It owns all its data, so that it may outlive the
/// caller.
template <typename Make, typename Result>
class RangeJob final : public Job {
 public:
  RangeJob(std::vector<std::uint64_t> numbers, std::shared_ptr<const Dataset> prefetched,
           std::shared_ptr<const Make> make)
      : numbers_(std::move(numbers)), prefetched_(std::move(prefetched)), make_(std::move(make)) {}

  std::size_t items() const override { return 1; }
  void run(std::size_t, unsigned worker) override {
    try {
      if (prefetched_) prefetched_->prefetch(numbers_);
      std::vector<Result> made;
      made.reserve(numbers_.size());
      for (const std::uint64_t number : numbers_) made.push_back((*make_)(number, worker));
      made_.set_value(std::move(made));
    } catch (...) {
      made_.set_exception(std::current_exception());
    }
  }

  /// Waits for the results; call it once. Rethrows the exceptions of the work.
  std::vector<Result> take() { return made_.get_future().get(); }

 private:
  std::vector<std::uint64_t> numbers_;
  std::shared_ptr<const Dataset> prefetched_;
  std::shared_ptr<const Make> make_;
  std::promise<std::vector<Result>> made_;
};

/// Runs work over the numbers 0 .. count-1 on the runtime's workers, in ranges of up to `longest`.
/// Announces the records of a range to `prefetched` unless that is null. Calls `make(number,
/// worker)` on a worker for each number, and `take(made)` with the result on this thread, in the
/// order of the numbers. When `take` returns false at the end of a range before the last one, it
/// ends early and returns false. Rethrows the exceptions of all. `make` must own all its data: a
/// call may still run after this has returned.
template <typename Make, typename Take>
bool over_records(Runtime& runtime, std::uint64_t count, std::uint64_t longest,
                  const std::shared_ptr<const Dataset>& prefetched, Make make, const Take& take) {
  using Work = RangeJob<Make, decltype(make(0, 0U))>;
  // Short enough that all workers end at about the same time.
  constexpr std::uint64_t ranges_per_worker = 64;
  const std::uint64_t length =
      std::clamp<std::uint64_t>(count / (ranges_per_worker * runtime.workers()), 1, longest);
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
    std::vector<std::uint64_t> numbers(std::min(length, count - next));
    std::iota(numbers.begin(), numbers.end(), next);
    next += numbers.size();
    begun.emplace_back(std::make_shared<Work>(std::move(numbers), prefetched, shared_make), pool);
    pool->submit(&owner, begun.back().first);
  };
  // Begins enough jobs to keep all workers busy. Their number bounds the memory.
  for (const auto& pool : pools)
    for (unsigned ahead = 0; ahead < 4 * pool->workers(); ++ahead) begin_on(pool.get());
  while (!begun.empty()) {
    const auto [job, pool] = std::move(begun.front());
    begun.pop_front();
    bool goes_on = true;
    for (auto& made : job->take()) goes_on = take(std::move(made));
    if (!goes_on) return begun.empty() && next == count;
    begin_on(pool);
  }
  return true;
}

}  // namespace millrace::cli
