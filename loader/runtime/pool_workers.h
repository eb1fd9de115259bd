// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/worker_pool.h>
#include <sys/types.h>
#include <tbb/task_arena.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/owner_process.h"
#include "runtime/job_queues.h"
#include "runtime/parked_workers.h"

namespace millrace {

/// A pool's threads and their shared state. No thread holds two pools' mutexes at once, and
/// `submit` and the workers wake others only after unlocking. Each worker sleeps on a condition of
/// its own. A thread that adds items wakes at most two sleeping workers. A worker that was woken
/// and finds further items wakes two more.
///
/// When other pools can begin to help with a pool's items, this pool makes them an offer: it wakes
/// at most two of their workers. A worker reads its pool's number of offers before it searches
/// other pools. If the number is unchanged afterwards, it has missed no offer.
class PoolWorkers {
 public:
  using Clock = WorkerPool::Clock;
  using Others = std::vector<std::weak_ptr<PoolWorkers>>;

  PoolWorkers(unsigned first_worker, unsigned workers, std::vector<int> cpus)
      : first_worker_(first_worker),
        workers_(workers),
        cpus_(std::move(cpus)),
        // All slots are reserved for our threads, so oneTBB starts no workers of its own.
        arena_(static_cast<int>(workers), workers),
        concurrency_(workers),
        parked_workers_(workers),
        gone_(workers, 0) {}

  /// Body of a worker's thread. The thread shares ownership of this object, since the pool may be
  /// destroyed before a stuck item returns.
  void work(unsigned number_in_pool);
  /// Call when all threads are created. Waits until each has entered the arena, so that none enters
  /// while another leaves.
  void wait_until_started();
  void begin_stop();
  /// Waits for the pool's threads, and for other pools' threads that run an item of this one.
  /// Returns at `deadline` at the latest.
  void wait_until_stopped(Clock::time_point deadline);
  /// Whether this process started the threads: false in a child of fork().
  bool is_owner_process() const { return process_.is_owner(); }

  /// Whether this worker's thread has left the pool.
  bool has_ended(std::size_t number_in_pool) const;
  // See the same methods of `WorkerPool`.
  void help(Others others);
  void submit(const void* owner, std::shared_ptr<Job> job, Help help);
  bool cancel(const void* owner, std::chrono::nanoseconds timeout);
  void set_concurrency(unsigned workers);
  unsigned concurrency() const;
  std::optional<std::chrono::nanoseconds> delay() const;
  bool bound() const;
  std::string binding_error() const;

 private:
  /// Pools to offer items to, once the lock is released, and the number of items.
  struct Offer {
    std::shared_ptr<const Others> others{};
    std::size_t items = 0;
  };

  struct Work {
    JobQueues::Item item{};
    /// The pool that the item belongs to; null if it is the worker's own. The pool may be destroyed
    /// before the item ends, so the worker shares its ownership.
    std::shared_ptr<PoolWorkers> helped{};
  };

  /// Next step of a worker: an item of its own pool, with workers to wake and an offer to make, or
  /// a search in the other pools.
  struct Turn {
    bool stop = false;
    std::optional<JobQueues::Item> own{};
    ParkedWorkers::Called called{};
    Offer offer{};
    std::shared_ptr<const Others> others{};
    bool waited = false;
    /// Pools whose offer woke this worker although it cannot help now. They must offer again.
    std::shared_ptr<const Others> pass_on{};
  };

  /// Waits until all threads are created. Returns false if one cannot be created. No thread enters
  /// the arena earlier: if thread stacks exhaust the address space, oneTBB hangs (2022.1) or
  /// aborts.
  bool wait_for_all_threads();
  void start(int binding_error);
  /// Ends `finished` and returns the worker's next item, from its own pool first. Returns nullopt
  /// when the pool stops.
  std::optional<Work> next(unsigned number_in_pool, std::optional<Work> finished);
  Turn wait_for_turn(unsigned number_in_pool, const void* ended,
                     std::optional<std::uint64_t>& offers_seen);
  void end(const void* owner) MILLRACE_REQUIRES(mutex_);
  /// Takes an item for another pool's worker. If the worker was woken for it (`called`), makes a
  /// further offer.
  std::optional<JobQueues::Item> take_for_helper(bool called);
  void help_ended(const void* owner);
  /// Whether there are items for helpers and no worker of this pool waits for items. It may become
  /// true in `submit`, in `set_concurrency`, and when a worker of this pool begins an item. So the
  /// pool makes an offer then.
  bool wants_help() const MILLRACE_REQUIRES(mutex_) {
    return !stopping_ && queues_.allows_help() && !parked_workers_.any_waits(concurrency_);
  }
  Offer offer_now() const MILLRACE_REQUIRES(mutex_) {
    return others_ && wants_help() ? Offer{others_, queues_.count_up_to(ParkedWorkers::at_once)}
                                   : Offer{};
  }
  void offer_again();
  /// Wakes workers of other pools, at most as many as there are items.
  static void make(Offer offer);
  static void pass_on(const Others& others);
  std::size_t note_offer(std::size_t items);

  const OwnerProcess process_;
  const unsigned first_worker_;
  const unsigned workers_;
  const std::vector<int> cpus_;
  tbb::task_arena arena_;

  mutable Mutex mutex_;
  /// Wakes threads that wait for workers to start, end or finish items.
  Condition changed_;
  JobQueues queues_ MILLRACE_GUARDED_BY(mutex_);
  /// The pools that this one helps and that help it.
  std::shared_ptr<const Others> others_ MILLRACE_GUARDED_BY(mutex_);
  /// Number of offers from these pools.
  std::uint64_t offers_ MILLRACE_GUARDED_BY(mutex_) = 0;
  /// Number of this pool's items that other pools' workers run.
  unsigned helped_ MILLRACE_GUARDED_BY(mutex_) = 0;
  unsigned concurrency_ MILLRACE_GUARDED_BY(mutex_);
  ParkedWorkers parked_workers_ MILLRACE_GUARDED_BY(mutex_);
  /// Per worker: 1 if its thread has left the pool.
  std::vector<char> gone_ MILLRACE_GUARDED_BY(mutex_);
  unsigned started_ MILLRACE_GUARDED_BY(mutex_) = 0;
  int binding_error_ MILLRACE_GUARDED_BY(mutex_) = 0;
  bool has_all_threads_ MILLRACE_GUARDED_BY(mutex_) = false;
  bool stopping_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::vector<pid_t> thread_ids_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
