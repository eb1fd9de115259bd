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
#include "runtime/sleepers.h"

namespace millrace {

/// A pool's threads and what they share. No pool's mutex is taken while another's is held, and
/// neither `submit` nor a worker wakes anybody under one. Each worker sleeps on a condition of its
/// own. Whoever brings items calls at most two of those who sleep;
/// who was called and finds more items than its own calls two more. A pool whose items others may
/// help with from a moment on makes them an offer in the same way. Who sees its pool's number of
/// offers unchanged since before it looked around has missed none.
class PoolWorkers {
 public:
  using Clock = WorkerPool::Clock;
  using Others = std::vector<std::weak_ptr<PoolWorkers>>;

  PoolWorkers(unsigned first_worker, unsigned workers, std::vector<int> cpus)
      : first_worker_(first_worker),
        workers_(workers),
        cpus_(std::move(cpus)),
        // All places are reserved for our threads; oneTBB is then asked for no workers of its own.
        arena_(static_cast<int>(workers), workers),
        concurrency_(workers),
        sleepers_(workers),
        gone_(workers, 0) {}

  /// A worker's life. The pool may be gone already when a stuck item returns, so the thread holds
  /// this by itself.
  void work(unsigned number_in_pool);
  /// Every thread then has its place in the arena, so that none enters it while another leaves.
  void wait_until_started();
  void begin_stop();
  /// Waits for own threads, and for other pools' that run an item of this one.
  void wait_until_stopped(Clock::time_point deadline);
  /// Whether this is the process that has its threads.
  bool here() const { return process_.here(); }

  /// Whether this worker's thread has left the pool.
  bool gone(std::size_t number_in_pool) const;
  // What `WorkerPool` says of them.
  void help(Others others);
  void submit(const void* owner, std::shared_ptr<Job> job, Help help);
  bool cancel(const void* owner, std::chrono::nanoseconds timeout);
  void set_concurrency(unsigned workers);
  unsigned concurrency() const;
  std::optional<std::chrono::nanoseconds> delay() const;
  bool bound() const;
  std::string binding_error() const;

 private:
  /// Whom to tell of so many items, once the lock is given back.
  struct Offer {
    std::shared_ptr<const Others> others{};
    std::size_t items = 0;
  };

  struct Work {
    JobQueues::Item item{};
    /// Whose item it is, where that is another pool, which may end meanwhile.
    std::shared_ptr<PoolWorkers> helped{};
  };

  /// What a worker does next: an item of its own pool, after it has called others and made an
  /// offer, or a look at the other pools.
  struct Turn {
    bool stop = false;
    std::optional<JobQueues::Item> own{};
    Sleepers::Called called{};
    Offer offer{};
    std::shared_ptr<const Others> others{};
    bool waited = false;
    /// Those whose offer it was called for but has no time for.
    std::shared_ptr<const Others> pass_on{};
  };

  void start(int binding_error);
  /// Says that `finished` is done and gives the worker its next item, its own pool's first; nullopt
  /// when the pool stops.
  std::optional<Work> next(unsigned number_in_pool, std::optional<Work> finished);
  Turn wait_for_turn(unsigned number_in_pool, const void* ended,
                     std::optional<std::uint64_t>& offers_seen);
  void end(const void* owner) MILLRACE_REQUIRES(mutex_);
  /// An item for another pool's worker; one that was called calls more of its kind.
  std::optional<JobQueues::Item> take_for_helper(bool called);
  void help_ended(const void* owner);
  /// There are items for others, and no worker here that waits for them. It may become true in
  /// `submit`, in `set_concurrency` and when a worker here begins an item: these make an offer.
  bool wants_help() const MILLRACE_REQUIRES(mutex_) {
    return !stopping_ && queues_.allows_help() && !sleepers_.any_waits(concurrency_);
  }
  Offer offer_now() const MILLRACE_REQUIRES(mutex_) {
    return others_ && wants_help() ? Offer{others_, queues_.left(Sleepers::at_once)} : Offer{};
  }
  void offer_again();
  /// Tells others, until as many of their workers are called as there are items.
  static void make(Offer offer);
  static void pass_on(const Others& others);
  std::size_t note_offer(std::size_t items);

  const OwnerProcess process_;
  const unsigned first_worker_;
  const unsigned workers_;
  const std::vector<int> cpus_;
  tbb::task_arena arena_;

  mutable Mutex mutex_;
  /// Wakes those who wait for workers.
  Condition changed_;
  JobQueues queues_ MILLRACE_GUARDED_BY(mutex_);
  /// The pools that it helps, and that help it.
  std::shared_ptr<const Others> others_ MILLRACE_GUARDED_BY(mutex_);
  /// How often one of them made an offer.
  std::uint64_t offers_ MILLRACE_GUARDED_BY(mutex_) = 0;
  /// Items of this pool that workers of others run.
  unsigned helped_ MILLRACE_GUARDED_BY(mutex_) = 0;
  unsigned concurrency_ MILLRACE_GUARDED_BY(mutex_);
  Sleepers sleepers_ MILLRACE_GUARDED_BY(mutex_);
  /// Per worker: whether its thread has left the pool.
  std::vector<char> gone_ MILLRACE_GUARDED_BY(mutex_);
  unsigned started_ MILLRACE_GUARDED_BY(mutex_) = 0;
  int binding_error_ MILLRACE_GUARDED_BY(mutex_) = 0;
  bool stopping_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::vector<pid_t> thread_ids_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
