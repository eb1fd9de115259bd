// SPDX-License-Identifier: Apache-2.0
// For the folders of millrace alone; it is not installed.
#pragma once

#include <millrace/detail/export.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

// Threads: every method may be called from any thread at once. Lifetimes: a job is kept until its
// last item is done; owners are keys alone and are never looked into. A pool may go before the
// pools it helps. What a stuck item uses outlives its pool.

namespace millrace {
class PoolWorkers;
}  // namespace millrace

namespace MILLRACE_API millrace {

/// Work for a pool: items 0 .. items()-1, each run once by some worker, begun in this order.
class Job {
 public:
  virtual ~Job() = default;
  virtual std::size_t items() const = 0;
  /// Runs one item. `worker` is the worker's number in its `Runtime`; two calls with one number
  /// never overlap. Must not throw.
  virtual void run(std::size_t item, unsigned worker) = 0;
};

/// Whether other pools' workers may run a job's items.
enum class Help {
  allowed,  ///< workers with nothing of their own to do may, once all workers of the job's own pool
            ///< are busy or paused
  never,
};

/// The workers of one NUMA node: a oneTBB arena with our own threads inside, bound to the node's
/// processors. The threads enter the arena by `execute()`, and all its places are theirs: oneTBB's
/// own workers, of which it has one too few, stay out, and parallel algorithms called inside an
/// item stay on the node. Each thread tells OpenMP, if the process has it when the pool starts, to
/// use no further threads.
class WorkerPool {
 public:
  using Clock = std::chrono::steady_clock;

  /// Starts `workers` threads with the numbers `first_worker` up, and binds them to `cpus`
  /// (operating system's numbers) unless there are none. `node` is what `node()` says. Throws
  /// `Error`: `invalid_argument` for no workers, `io` if the operating system refuses a thread.
  WorkerPool(unsigned first_worker, unsigned workers, const std::vector<int>& cpus,
             std::optional<int> node = std::nullopt);
  /// Stops within half a second.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Ends the threads when their current items are done, and waits for other pools' workers that
  /// run items of this one. What has not returned by `deadline` is let go: it ends by itself later,
  /// and keeps what it uses until then. `begin_stop` does not wait, so that several pools end at
  /// once. By the owner alone, as the last call.
  void begin_stop();
  void stop(Clock::time_point deadline);

  /// Lets these pools' workers, whose numbers differ, help each other from now on: an active worker
  /// whose own pool has no item to begin runs one of another pool's jobs that allow it, and then
  /// looks at its own pool first again. Once, for all pools of a runtime; pools may end in any
  /// order.
  static void help_each_other(const std::vector<WorkerPool*>& pools);

  /// Appends a job to its owner's queue. Owners take turns item by item; within one, jobs are
  /// served in order.
  void submit(const void* owner, std::shared_ptr<Job> job, Help help = Help::allowed);
  /// Drops the items of `owner` that have not begun, and waits for those that have, whoever runs
  /// them. False if some still run after `timeout`.
  bool cancel(const void* owner, std::chrono::nanoseconds timeout);

  /// How many workers take items; the others sleep. 0 pauses the pool: its workers neither begin
  /// its items nor help, while other pools' workers may run the items that allow it. More than
  /// there are threads counts as all. A worker that has an item, or is looking for one in another
  /// pool, still ends that.
  void set_concurrency(unsigned workers);
  unsigned concurrency() const;
  unsigned workers() const { return workers_; }
  /// The number of its first worker.
  unsigned first_worker() const { return first_worker_; }
  /// The NUMA node (operating system's number) whose workers these are, if the constructor was
  /// told.
  std::optional<int> node() const { return node_; }
  /// Whether every thread could be bound to its processors (false if that was not asked for).
  bool bound() const;
  /// Why a thread could not be bound, in the operating system's words; empty if none was refused.
  std::string binding_error() const;
  /// How long its threads so far could have run while the operating system gave their processor to
  /// others, added up; nullopt if it does not tell (Linux: schedstat).
  std::optional<std::chrono::nanoseconds> delay() const;

 private:
  const unsigned first_worker_;
  const unsigned workers_;
  const std::optional<int> node_;
  std::shared_ptr<PoolWorkers> impl_;
  std::vector<std::thread> threads_;
};

}  // namespace millrace
