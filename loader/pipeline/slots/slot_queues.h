// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/pipeline_options.h>

#include <algorithm>
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
#include "pipeline/slots/run_meter.h"
#include "pipeline/slots/slot_layout.h"
#include "pipeline/slots/slots.h"

namespace millrace {

/// The only state shared by a pipeline's threads: host slots, output slots, the queues that hold
/// them, and the first error. Its methods change the states of slots as shown below. A call in any
/// other state throws `Error` (`internal`). The methods also update the run meter. No device,
/// dataset, transform or worker pool is called while the mutex is held.
///
///     host slot:    free -take_free-> planning -planned-> planned [sample_made and next_made for
///                   each micro-batch] -leave, release-> leaving -free_host-> free
///     output slot:  free -begin_filling, wait_for_output-> filling
///                   -micro_batch_enqueued-> ready -hand_out-> live
///                   -release-> free; while some micro-batches are not on their way:
///                   -release-> returned -micro_batch_enqueued for the last one-> free
///
/// The threads, the workers' jobs and the live batches share ownership; the last owner destroys it.
/// All methods may be called by several threads at the same time. The comments say which thread
/// owns a slot between two calls.
class SlotQueues {
 public:
  using Clock = std::chrono::steady_clock;

  /// The batches of a run.
  struct Run {
    MicroBatches micro_batches;
    /// Numbers of the first batch and of the batch after the last.
    std::uint64_t first = 0;
    std::uint64_t end = UINT64_MAX;
    /// Number of batches in an epoch, if the next epoch is planned only when the trainer asks for
    /// it; else 0.
    std::uint64_t epoch_break = 0;
    RunPosition begin{};
    /// Number of the batch from which on a blocking call on the batch path ends the run. The check
    /// begins when this batch is the next one to be handed out.
    std::uint64_t forbids_blocking_from = UINT64_MAX;
    /// Whether a slot keeps its records until it is free, because its samples may be made again.
    bool keeps_records = false;
  };
  /// Words for messages: the kind of the slots that are handed out, and the option that sets their
  /// number.
  struct SlotWords {
    const char* kind = "host";
    const char* option = "prefetch";
  };
  /// A micro-batch whose samples are all made.
  struct ReadyMicroBatch {
    HostSlot* host;
    std::size_t micro_batch;
  };

  /// Begins with all host slots free and without output slots.
  SlotQueues(const Run& run, Slots slots, RunMeter meter);
  ~SlotQueues();

  // For the constructor of the batch delivery, before the threads start.
  const std::vector<std::unique_ptr<HostSlot>>& hosts() const { return slots_.hosts; }
  void add_output(std::unique_ptr<OutputSlot> output);
  void set_words(SlotWords words) { message_words_ = words; }

  const MicroBatches& micro_batches() const { return run_.micro_batches; }

  // Called by the plan-recycle thread.
  /// Returns a free slot whose plan holds the next batch's number. Returns null if no slot is free,
  /// or after the last batch. The caller owns the slot until `planned`.
  HostSlot* take_free();
  /// Marks the slot as planned: workers may make its samples. The caller began to plan it at
  /// `began`; `workers` is the number of active workers. Returns false if the queues are closed.
  bool planned(HostSlot& host, Clock::time_point began, unsigned workers);
  /// Blocks until a batch can be planned or a slot is leaving. `leaving` receives the leaving
  /// slots, which the caller owns until `free_host`. Returns false if the queues are closed.
  bool wait_for_leaving(std::vector<HostSlot*>& leaving);
  /// Frees a slot that nothing reads any more.
  void free_host(HostSlot& host);

  // Called by workers, each for samples of its own.
  /// Notes that a worker begins `samples` samples. Returns false if the queues are closed; then the
  /// worker need not make them.
  bool begin_sample(std::size_t samples = 1);
  /// Notes that `samples` samples from `sample` on are made. All must belong to one micro-batch.
  /// The call for the micro-batch's last sample runs `finish`, if it is set, before the micro-batch
  /// counts as made.
  void sample_made(HostSlot& host, std::size_t sample, std::size_t samples = 1,
                   const std::function<void()>& finish = nullptr);

  // Called by the upload thread.
  /// Waits for the next made micro-batch in plan order and returns it. The caller has been idle
  /// since `since`. Returns nullopt at `until`, or if the queues are closed.
  std::optional<ReadyMicroBatch> next_made(Clock::time_point since, Clock::time_point until);
  /// Waits for a free output slot for a batch and returns it; null if the queues are closed. The
  /// caller owns the slot until the first `micro_batch_enqueued`.
  OutputSlot* wait_for_output(std::uint64_t batch);
  /// Takes an output slot that is known to be free, for the same use.
  void begin_filling(OutputSlot& output);
  /// Notes that the host slot's next micro-batch is on its way to the output slot. The upload
  /// thread began this work at `began` and copied `bytes` bytes from the slot.
  void micro_batch_enqueued(OutputSlot& output, const HostSlot& host, std::size_t micro_batch,
                            Clock::time_point began, std::size_t bytes);
  /// Notes that all of the slot's micro-batches are on their way.
  void leave(HostSlot& host);
  void converted(const std::vector<RunMeter::StreamWork>& conversions);

  // Called by the trainer's threads.
  /// Waits for the next batch and returns it; null after the last batch. The caller owns it until
  /// `release`.
  OutputSlot* hand_out(const NextRequest& request);
  /// Blocks until a micro-batch of a live output slot is on its way. If the queues are closed,
  /// throws the run's error or `Error` (`stopped`).
  void wait_for_micro_batch(const OutputSlot& output, std::size_t micro_batch);
  /// Notes that the trainer has this micro-batch and those before it. The trainer asked for the
  /// micro-batch at `asked` and got it at `got`.
  void micro_batch_taken(OutputSlot& output, std::size_t micro_batch, Clock::time_point asked,
                         Clock::time_point got);
  /// Notes that a live output slot is used on `stream`. Returns false if the slot has no unused
  /// event for the stream; the caller then calls again with an `event`.
  bool use(OutputSlot& output, Stream& stream, std::unique_ptr<Event> event = nullptr);
  /// Makes the output slot share ownership of a stream that it is used on.
  void own_stream(OutputSlot& output, std::shared_ptr<Stream> stream);
  void release(OutputSlot& output);
  std::uint64_t next_number() const {
    MutexLock lock(mutex_);
    return progress_.handed_out;
  }
  /// Returns the number of the first batch that is certainly not planned yet, given that at most
  /// `max_ahead` batches are planned and not handed out.
  std::uint64_t first_unplanned(std::uint64_t max_ahead) const {
    MutexLock lock(mutex_);
    return std::min(progress_.handed_out + max_ahead, progress_.plan_end);
  }
  /// Returns the position after the last batch handed out.
  RunPosition position() const;

  // Called by any thread.
  /// Closes the queues with the exception being handled as the run's error, unless they are closed
  /// already. Works even if memory is exhausted.
  void fail(const char* stage, const Device* device = nullptr) noexcept;
  /// Does the same, then throws the run's first error. For the trainer's threads.
  [[noreturn]] void fail_and_throw(const char* stage, const Device* device = nullptr);
  void close() noexcept { close_with(nullptr); }
  bool closed() const { return closed_.load(std::memory_order_relaxed); }
  void throw_if_closed() const;
  /// Whether a blocking call on the batch path now ends the run.
  bool forbids_blocking() const { return forbids_blocking_.load(std::memory_order_relaxed); }
  /// Waits until all streams have finished their uses of the free output slots. Returns false if
  /// some have not by `deadline`.
  bool wait_for_uses(Clock::time_point deadline) const;

  // Access to the run meter.
  RunMeter meter() const {
    MutexLock lock(mutex_);
    return meter_;
  }
  std::chrono::nanoseconds stalled() const;
  void note_workers(unsigned active);
  /// Begins the run's first report. `base` are the workers' figures at this time.
  void begin_report(WorkerFigures base);
  /// Returns the measurements up to now, with the time, and begins a new report with `base`.
  std::pair<RunMeter, Clock::time_point> take_report(WorkerFigures base);

 private:
  struct Queues {
    std::deque<HostSlot*> free{};
    std::deque<HostSlot*> planned{};
    std::deque<HostSlot*> leaving{};
    std::deque<OutputSlot*> free_outputs{};
    std::deque<OutputSlot*> ready{};
  };
  struct Progress {
    /// Numbers of the next batches to plan and to hand out.
    std::uint64_t planned;
    std::uint64_t handed_out;
    /// Number after the last batch that may be planned.
    std::uint64_t plan_end;
    /// `first` plus the number of batches whose samples are all made. It is below `batches_out()`
    /// if micro-batches were handed out early.
    std::uint64_t made;
    RunPosition position;
    /// How many numbers before `handed_out` are skipped (`BatchPlan::skipped_numbers`).
    std::uint64_t skipped = 0;
    /// Number of batches that the trainer holds.
    std::size_t live = 0;

    std::uint64_t batches_out() const { return handed_out - skipped; }
  };

  bool all_enqueued(const OutputSlot& output) const MILLRACE_REQUIRES(mutex_) {
    return output.micro_batches_enqueued == run_.micro_batches.count;
  }
  bool may_plan() const MILLRACE_REQUIRES(mutex_) {
    return !queues_.free.empty() && progress_.planned < progress_.plan_end;
  }
  /// Permits planning up to the end of the epoch to which the next batch to be handed out belongs.
  void open_epoch() MILLRACE_REQUIRES(mutex_) {
    const std::uint64_t per_epoch = run_.epoch_break;
    progress_.plan_end = run_.end;
    if (per_epoch > 0)
      progress_.plan_end = std::min((progress_.handed_out / per_epoch + 1) * per_epoch, run_.end);
  }
  void set_leaving(HostSlot& host, const char* call, NotifyAfterUnlock& notify)
      MILLRACE_REQUIRES(mutex_);
  void recycle(OutputSlot& output, NotifyAfterUnlock& notify) MILLRACE_REQUIRES(mutex_);
  [[noreturn]] void refuse_waiting(bool exhausted, const NextRequest& request) const
      MILLRACE_REQUIRES(mutex_);
  void close_with(std::exception_ptr error) noexcept;
  void throw_error() const MILLRACE_REQUIRES(mutex_);
  /// Reports the state of the queues to the run meter. Must be called after each change of that
  /// state.
  void note_queue_lengths(Clock::time_point now) MILLRACE_REQUIRES(mutex_);

  const Run run_;
  Slots slots_;
  SlotWords message_words_;
  /// Error for closing the queues when no memory is left for a more precise one.
  const std::exception_ptr out_of_memory_error_;

  mutable Mutex mutex_;
  /// One condition for each kind of waiter and event, so that an event wakes only threads that wait
  /// for it. The upload thread waits for a made micro-batch or for an output slot. The trainer
  /// waits for a whole batch or for a micro-batch.
  Condition made_condition_;
  Condition output_condition_;
  Condition plan_recycle_condition_;
  Condition batch_condition_;
  Condition micro_batch_condition_;
  /// May be read without the mutex to end early. Threads that must not miss the change read it
  /// under the mutex, which orders it.
  std::atomic<bool> closed_{false};
  /// Set once every slot has been used. Orders no other memory.
  std::atomic<bool> forbids_blocking_{false};
  /// Number of planned samples that no worker has begun. Workers count down; the worker that begins
  /// the last sample calls `note_queue_lengths`. The counter has a cache line of its own, apart
  /// from the values that all workers read for each sample.
  alignas(64) std::atomic<std::size_t> unbegun_{0};
  alignas(64) std::exception_ptr error_ MILLRACE_GUARDED_BY(mutex_);
  Queues queues_ MILLRACE_GUARDED_BY(mutex_);
  Progress progress_ MILLRACE_GUARDED_BY(mutex_);
  RunMeter meter_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
