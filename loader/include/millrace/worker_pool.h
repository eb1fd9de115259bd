// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace millrace {

/// Work for a pool: items 0 .. items()-1, each run once by some worker, begun in this order.
class Job {
 public:
  virtual ~Job() = default;
  virtual std::size_t items() const = 0;
  /// Runs one item. `worker` is the worker's number in its `Runtime`; two calls with one number never overlap. Must not throw.
  virtual void run(std::size_t item, unsigned worker) = 0;
};

/// The workers of one NUMA node: a oneTBB arena with our own threads inside, bound to the node's processors. The threads enter the arena by
/// `execute()`, and all its places are theirs: oneTBB's own workers, of which it has one too few, stay out, and parallel
/// algorithms called inside an item stay on the node. All methods may be called from any thread at once.
class WorkerPool {
 public:
  /// Starts `workers` threads with the numbers `first_worker` up. Where `cpus` (operating system's numbers) is not empty they
  /// are bound to these.
  WorkerPool(unsigned first_worker, unsigned workers, const std::vector<int>& cpus);
  /// Ends the threads when their current items are done. One that does not return within half a second is let go and ends
  /// by itself later.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Appends a job to its owner's queue. Owners take turns item by item; within one, jobs are served in order.
  void submit(const void* owner, std::shared_ptr<Job> job);
  /// Drops the items of `owner` that have not begun, and waits for those that have. False if some still run after `timeout`.
  bool cancel(const void* owner, std::chrono::nanoseconds timeout);

  /// How many workers take items; the others sleep. 0 pauses the pool. More than there are threads counts as all.
  void set_concurrency(unsigned workers);
  unsigned concurrency() const;
  unsigned workers() const;
  /// Whether every thread could be bound to its processors (false where that was not asked for).
  bool bound() const;
  /// Why a thread could not be bound, in the operating system's words; empty where none was refused.
  std::string binding_error() const;
  /// How long its threads so far could have run while the operating system gave their processor to others, added up; none where
  /// it does not tell (Linux: schedstat).
  std::optional<std::chrono::nanoseconds> delay() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
  std::vector<std::thread> threads_;
};

}  // namespace millrace
