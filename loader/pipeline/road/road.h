// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/pipeline.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "pipeline/road/run_meter.h"
#include "pipeline/road/slot_layout.h"
#include "pipeline/road/slots.h"

namespace millrace {

/// The only state that a pipeline's threads share: the slots and leases, the queues they stand in,
/// and the first error. Its calls are the changes of state below; a call in another state is an
/// internal error. The meter listens here. No call of a device, dataset, transform or worker pool
/// is made under its mutex.
///
///     host slot:  free -take_free-> planning -planned-> planned [sample_made, next_made: micro-
///                 batch by micro-batch] -leave-> leaving -left-> free
///     lease:      free -fill, wait_for_lease-> filling -on_way-> ready -hand_out-> live
///                 -release-> free, or if micro-batches are not on their way yet, returned and
///                 with the last one's `on_way` free
///
/// Held by the threads, the jobs given to workers and the live batches; whoever is last ends it.
/// All methods may be called from any thread at once; who has a slot is said at each.
class Road {
 public:
  using Clock = std::chrono::steady_clock;

  /// Which batches travel on it.
  struct Run {
    MicroBatches micro_batches;
    /// The first batch's number, and the one behind the last.
    std::uint64_t first = 0;
    std::uint64_t end = UINT64_MAX;
    std::uint64_t position = 0;
    /// Blocking calls end the run once this is the next batch to be handed out.
    std::uint64_t watched_from = UINT64_MAX;
  };
  /// What a slot that is handed out is called, and which option says how many there are.
  struct SlotWords {
    const char* kind = "host";
    const char* option = "prefetch";
  };
  /// A made micro-batch.
  struct Made {
    HostSlot* host;
    std::size_t micro_batch;
  };

  /// All slots are free, and there are no leases.
  Road(const Run& run, Slots slots, RunMeter meter);
  ~Road();

  // Before the threads start: whose way to the trainer it is.
  const std::vector<std::unique_ptr<HostSlot>>& hosts() const { return slots_.hosts; }
  void add_lease(std::unique_ptr<Lease> lease);
  void set_words(SlotWords words) { words_ = words; }

  const MicroBatches& micro_batches() const { return run_.micro_batches; }

  // The reaper.
  /// A free slot for the next batch, whose number is in its plan; null if there is none, or no
  /// further batch. The reaper has it until `planned`.
  HostSlot* take_free();
  /// Its samples may be made from now on, by `workers` active workers. False if the road is closed.
  bool planned(HostSlot& host, Clock::time_point began, unsigned workers);
  /// Sleeps until there may be something to plan or slots are leaving; gives these, which the
  /// reaper has until `left`. False if the road is closed.
  bool wait_for_leaving(std::vector<HostSlot*>& leaving);
  /// Nothing reads the slot any more.
  void left(HostSlot& host);

  // Workers, which have the place of one sample each.
  /// False if the road is closed: the samples need not be made.
  bool begin_sample(std::size_t samples = 1);
  /// So many from `sample` on, which lie in one micro-batch, are made. Whoever makes the
  /// micro-batch's last one calls `finish`, if there is one, before it counts as made.
  void sample_made(HostSlot& host, std::size_t sample, std::size_t samples = 1,
                   const std::function<void()>& finish = nullptr);

  // The feeder.
  /// The next made micro-batch in plan order, which the feeder has waited for since `since`;
  /// nullopt at `until`, or if the road is closed.
  std::optional<Made> next_made(Clock::time_point since, Clock::time_point until);
  /// A lease for a batch; null if the road is closed. The feeder has it until its first `on_way`.
  Lease* wait_for_lease(std::uint64_t batch);
  /// The same of a lease that is known to be free.
  void fill(Lease& lease);
  /// The next micro-batch of the slot is on its way into the lease. Since `began` the feeder has
  /// seen to that; `bytes` were copied from the slot.
  void on_way(Lease& lease, const HostSlot& host, std::size_t micro_batch, Clock::time_point began,
              std::size_t bytes);
  /// All of the slot's micro-batches are on their way.
  void leave(HostSlot& host);
  void converted(const std::vector<RunMeter::StreamWork>& conversions);

  // The trainer's threads.
  /// The next batch, which the caller has until `release`; null after the last one.
  Lease* hand_out(const NextRequest& request);
  /// Sleeps until a micro-batch of a live lease is on its way. Throws if the road is closed.
  void wait_for_micro_batch(const Lease& lease, std::size_t micro_batch);
  /// The trainer, who asked for it at `asked` and got it at `got`, has it and those before it.
  void taken(Lease& lease, std::size_t micro_batch, Clock::time_point asked, Clock::time_point got);
  /// Notes that a live lease is used on `stream`. False if that takes an event more than the lease
  /// has: call it again with one.
  bool use(Lease& lease, Stream& stream, std::unique_ptr<Event> event = nullptr);
  /// Shares the ownership of a stream that a live lease is used on, for the lease.
  void keep(Lease& lease, std::shared_ptr<Stream> stream);
  void release(Lease& lease);
  std::uint64_t next_number() const;
  std::uint64_t position() const;

  // Any thread.
  /// Closes the road with the exception being handled, unless it is closed already. Needs no memory
  /// for that.
  void fail(const char* stage, const Device* device = nullptr) noexcept;
  /// The same for the trainer's thread, which is told the run's first error.
  [[noreturn]] void fail_and_throw(const char* stage, const Device* device = nullptr);
  void close() noexcept { close_with(nullptr); }
  bool closed() const { return closed_.load(std::memory_order_relaxed); }
  void throw_if_closed() const;
  /// Whether blocking calls on the batch path end the run by now.
  bool watched() const { return watched_.load(std::memory_order_relaxed); }
  /// Waits for the uses of the leases that nobody has; false if some do not end by `deadline`.
  bool wait_for_uses(Clock::time_point deadline) const;

  // The meter.
  RunMeter meter() const;
  std::chrono::nanoseconds stalled() const;
  void note_workers(unsigned active);
  /// The report begins here, with these figures: the run's first one, or anew.
  void begin_report(CrewFigures base);
  /// Returns what was measured until then.
  std::pair<RunMeter, Clock::time_point> take_report(CrewFigures base);

 private:
  struct Queues {
    std::deque<HostSlot*> free{};
    std::deque<HostSlot*> planned{};
    std::deque<HostSlot*> leaving{};
    std::deque<Lease*> free_leases{};
    std::deque<Lease*> ready{};
  };
  struct Progress {
    /// The next batches to be planned and handed out.
    std::uint64_t planned;
    std::uint64_t handed_out;
    /// The number behind the batches that are made in full; below `handed_out` if micro-batches
    /// went out early.
    std::uint64_t made;
    std::uint64_t position;
    /// Batches that the trainer has.
    std::size_t live = 0;
  };

  bool may_plan() const MILLRACE_REQUIRES(mutex_) {
    return !queues_.free.empty() && progress_.planned < run_.end;
  }
  void set_leaving(HostSlot& host, const char* call, Wakes& wakes) MILLRACE_REQUIRES(mutex_);
  void recycle(Lease& lease, Wakes& wakes) MILLRACE_REQUIRES(mutex_);
  [[noreturn]] void refuse_waiting(bool exhausted, const NextRequest& request) const
      MILLRACE_REQUIRES(mutex_);
  void close_with(std::exception_ptr error) noexcept;
  void throw_error() const MILLRACE_REQUIRES(mutex_);
  /// Tells the meter what the road looks like; to be called after that may have changed.
  void note(Clock::time_point now) MILLRACE_REQUIRES(mutex_);

  const Run run_;
  Slots slots_;
  SlotWords words_;
  /// What the road is closed with if there is no memory to say more.
  const std::exception_ptr reserved_;

  mutable Mutex mutex_;
  /// Each for one kind of waiter and what it waits for, so that nobody wakes in vain: the feeder
  /// for a made micro-batch and for a lease, the trainer for a whole batch and for a micro-batch.
  Condition made_wakes_;
  Condition lease_wakes_;
  Condition reaper_wakes_;
  Condition batch_wakes_;
  Condition micro_batch_wakes_;
  /// Read without the mutex by those who only want to end early; the mutex orders it for all who
  /// must not miss it.
  std::atomic<bool> closed_{false};
  /// Every slot has been used; orders nothing.
  std::atomic<bool> watched_{false};
  /// Samples that are planned and that no worker has begun; workers count down, and who takes the
  /// last one looks at the road. On a cache line without what all of them read for each sample.
  alignas(64) std::atomic<std::size_t> unbegun_{0};
  alignas(64) std::exception_ptr error_ MILLRACE_GUARDED_BY(mutex_);
  Queues queues_ MILLRACE_GUARDED_BY(mutex_);
  Progress progress_ MILLRACE_GUARDED_BY(mutex_);
  RunMeter meter_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
