// SPDX-License-Identifier: Apache-2.0
// Internal: used only by millrace's own folders and not installed.
#pragma once

#include <millrace/detail/export.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

// Threads: every method may be called by several threads at the same time. Lifetimes: a job is kept
// until its last item is done. Owners serve only as keys and are never dereferenced. A pool may be
// destroyed before the pools that it helps. If an item hangs, the objects that it uses are kept
// longer than the pool.

namespace millrace {
class PoolWorkers;
}  // namespace millrace

namespace MILLRACE_API millrace {

/// Work for a pool: items 0 .. items()-1. Each item is run once, by any worker. Items begin in this
/// order.
class Job {
 public:
  virtual ~Job() = default;
  virtual std::size_t items() const = 0;
  /// Runs one item. `worker` is the worker's number in its `Runtime`; two calls with one number
  /// never overlap. Must not throw.
  virtual void run(std::size_t item, unsigned worker) = 0;
};

/// Whether workers of other pools may run a job's items.
enum class Help {
  allowed,  ///< idle workers of other pools may run them while all workers of the job's own pool
            ///< are busy or paused
  never,
};

/// The workers of one NUMA node: a oneTBB arena with millrace's own threads inside, bound to the
/// node's processors. The threads enter the arena by `execute()`. All slots of the arena are
/// reserved for them, so oneTBB's own workers stay out. Parallel algorithms that are called inside
/// an item stay on the node. If the process has OpenMP when the pool starts, each thread sets it to
/// use no further threads.
class WorkerPool {
 public:
  using Clock = std::chrono::steady_clock;

  /// Starts `workers` threads with the numbers `first_worker` up, and binds them to `cpus`
  /// (operating system's numbers) unless `cpus` is empty. `node()` returns `node`. Throws `Error`:
  /// `invalid_argument` for 0 workers, `io` if the operating system refuses a thread or address
  /// space for the arena.
  WorkerPool(unsigned first_worker, unsigned workers, const std::vector<int>& cpus,
             std::optional<int> node = std::nullopt);
  /// Stops within half a second.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Ends the threads when their current items are done. `stop` also waits for workers of other
  /// pools that run items of this one. Threads that have not returned by `deadline` are detached:
  /// they end later, and keep the objects that they use until then. `begin_stop` does not wait, so
  /// that several pools can end at the same time. Only the owner of the pool may call them, as its
  /// last calls.
  void begin_stop();
  void stop(Clock::time_point deadline);

  /// Lets the workers of these pools help each other from now on. The numbers of all workers must
  /// differ. If an active worker's own pool has no item, the worker runs one item of another pool's
  /// job that allows help. It then looks for an item of its own pool again. Call it once, for all
  /// pools of a runtime. Pools may end in any order.
  static void help_each_other(const std::vector<WorkerPool*>& pools);

  /// Appends a job to its owner's queue. Workers take items from the owners' queues round-robin,
  /// one item at a time. Jobs of one owner begin in order.
  void submit(const void* owner, std::shared_ptr<Job> job, Help help = Help::allowed);
  /// Drops the items of `owner` that have not begun, and waits for those that are running on any
  /// thread. Returns false if some still run after `timeout`.
  bool cancel(const void* owner, std::chrono::nanoseconds timeout);

  /// Sets the number of workers that take items; the others sleep. 0 pauses the pool: its workers
  /// neither begin items nor help, but workers of other pools may run its items that allow help. A
  /// number above `workers()` means all workers. A worker that already has an item, or is searching
  /// for one in another pool, finishes that first.
  void set_concurrency(unsigned workers);
  unsigned concurrency() const;
  unsigned workers() const { return workers_; }
  /// Number of its first worker.
  unsigned first_worker() const { return first_worker_; }
  /// The NUMA node (operating system's number) of these workers, if it was passed to the
  /// constructor.
  std::optional<int> node() const { return node_; }
  /// Whether every thread was bound to its processors; false if binding was not requested.
  bool bound() const;
  /// The operating system's reason why a thread could not be bound; empty if binding did not fail.
  std::string binding_error() const;
  /// Total time in which its threads so far were ready to run but the operating system gave their
  /// processor to others; nullopt if the operating system does not report it (Linux: schedstat).
  std::optional<std::chrono::nanoseconds> delay() const;

 private:
  void start_threads();

  const unsigned first_worker_;
  const unsigned workers_;
  const std::optional<int> node_;
  std::shared_ptr<PoolWorkers> impl_;
  std::vector<std::thread> threads_;
};

}  // namespace millrace
