// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/report.h>
#include <millrace/trace.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/histogram.h"
#include "report/time_weighted_mean.h"

namespace millrace {

/// State of the slot queues at one moment.
struct QueueState {
  std::size_t free_slots = 0;
  /// Number of batches that are made and not handed out.
  std::size_t ready_batches = 0;
  /// Whether every planned sample has been begun by a worker.
  bool nothing_to_begin = true;
};

/// Sums of the workers' counters, for the report.
struct WorkCounts {
  std::uint64_t samples = 0;
  std::uint64_t encoded_bytes = 0;
  std::map<std::string, std::uint64_t> decoders{};
  std::map<std::string, std::uint64_t> decoder_ns{};
  /// Samples, and nanoseconds in the transform's stages, by `SampleContext::Source`.
  std::array<std::uint64_t, 4> made_from{};
  std::array<std::uint64_t, 4> made_from_ns{};
  /// One per stage: "read", then the stages of the transform and of the batch transform.
  std::vector<Histogram> stages{};
};

/// Number of samples made on a NUMA node: by its workers in any slot, by its workers in other
/// nodes' slots, and by other nodes' workers in its slots.
struct NodeFigures {
  std::uint64_t by_workers = 0;
  std::uint64_t elsewhere = 0;
  std::uint64_t by_helpers = 0;
};

/// Work of the sample workers so far.
struct WorkerFigures {
  WorkCounts work{};
  std::vector<NodeFigures> nodes{};
  /// Time that workers waited for a processor; see `WorkerPool::delay`.
  std::optional<std::chrono::nanoseconds> delay{};
  /// Time in which a stream was read; nullopt for other datasets.
  std::optional<std::chrono::nanoseconds> stream_busy{};
};

/// Measures a run, except the making of samples: waits, copies, conversions and mean queue levels.
/// It sums them for the report and keeps the workers' figures at the report's beginning. It writes
/// spans into the trace if there is one. The mutex of the slot queues guards it; a copy can be read
/// without the mutex.
class RunMeter {
 public:
  using Clock = std::chrono::steady_clock;

  /// Times of one call of `next`: when the trainer asked for a batch and when it got one. Also when
  /// the batch got its host slot, and when it waited for its device slot. The latter may be outside
  /// the call.
  struct HandOut {
    Clock::time_point asked;
    Clock::time_point got;
    Clock::time_point planned_at;
    Clock::time_point slot_wait_begin;
    Clock::time_point slot_wait_end;
    std::uint64_t batch = 0;
    std::size_t samples = 0;
  };
  /// Copy, device stage or conversion of a micro-batch: when the micro-batch was available for it,
  /// and when the work began and ended.
  struct StreamWork {
    Clock::time_point available_at;
    Clock::time_point begin;
    Clock::time_point end;
    std::uint64_t batch = 0;
    /// Index of its name in the constructor's `conversions`; 0 for a copy.
    std::size_t work = 0;
  };

  /// Adds its lanes to `group` of `trace`. Shares ownership of the trace, so that the lanes exist
  /// while a thread owns the slot queues, which own the meter. A null `trace` turns tracing off.
  /// `conversions` are the names of the device stages and conversions that the run times, in order.
  RunMeter(std::shared_ptr<Trace> trace, std::size_t group,
           const std::vector<std::string>& conversions, Clock::time_point started);

  /// Begins to measure. Call it once the memory is allocated. Figures relative to the whole run
  /// still count from `started`.
  void begin(Clock::time_point now, WorkerFigures base);
  /// Resets all figures but `stalled` and the time to the run's first batch.
  void restart(Clock::time_point now, WorkerFigures base);
  /// Returns a copy with the figures up to now, and the time now. Then restarts.
  std::pair<RunMeter, Clock::time_point> take(WorkerFigures base);

  void note(Clock::time_point now, const QueueState& state);
  void note_workers(Clock::time_point now, unsigned active) {
    set(lanes_.active_workers, levels_.active_workers, now, active);
  }
  void planned(Clock::time_point begin, Clock::time_point end, std::uint64_t batch) {
    if (lanes_.planner != nullptr) lanes_.planner->set_current_thread();
    add(lanes_.planner, "plan", begin, end, batch);
  }
  /// Adds a wait of the upload thread.
  void waited(const char* what, Clock::time_point begin, Clock::time_point end,
              std::uint64_t batch) {
    add(lanes_.upload_thread, what, begin, end, batch);
  }
  void uploaded(Clock::time_point begin, Clock::time_point end, std::uint64_t batch,
                std::size_t bytes);
  void copied(const StreamWork& copy) { add(copies_, lanes_.copies, copy); }
  /// Adds a device stage or a conversion.
  void converted(const StreamWork& work) { add(conversions_[work.work], lanes_.conversions, work); }
  void handed_out(const HandOut& hand_out);
  /// Notes a call of `next` that timed out. The wait counts with the next hand-out.
  void timed_out(std::chrono::nanoseconds waited) { timed_out_ += waited; }
  void waited_for_micro_batch(Clock::time_point asked, Clock::time_point got, std::uint64_t batch);

  /// Returns the time that the trainer has waited for data since the run began.
  std::chrono::nanoseconds stalled() const { return stalled_; }
  /// Returns the sample workers' figures at the beginning of the report.
  const WorkerFigures& base() const { return base_; }

  /// Writes its figures into a report that already has the workers' stages with their busy times.
  /// `sample_workers` are the sample workers' figures by now.
  void fill(Report& report, const WorkerFigures& sample_workers, Clock::time_point now) const;

 private:
  struct Lanes {
    Trace::Lane* planner = nullptr;
    Trace::Lane* upload_thread = nullptr;
    Trace::Lane* copies = nullptr;
    Trace::Lane* conversions = nullptr;
    Trace::Lane* trainer = nullptr;
    Trace::Lane* free_slots = nullptr;
    Trace::Lane* ready_batches = nullptr;
    Trace::Lane* active_workers = nullptr;
  };

  /// Figures of one kind of work on a device stream: the copies, one stage, or the conversions.
  struct StreamWorks {
    std::string name;
    /// The name that the trace keeps; empty without a trace.
    const char* span = "";
    Histogram each{};
    bool timed = false;
    Clock::time_point last_end{};
    double waits_seconds = 0;
  };

  void add(StreamWorks& works, Trace::Lane* lane, const StreamWork& work);
  static void add(Trace::Lane* lane, const char* name, Clock::time_point begin,
                  Clock::time_point end, std::uint64_t batch);
  static void clear(StreamWorks& works);
  static void set(Trace::Lane* lane, TimeWeightedMean& level, Clock::time_point now, double value);
  void add_stall(std::chrono::nanoseconds waited);
  void fill_workers(Report& report, Clock::time_point now) const;
  static StageReport stage_of(const StreamWorks& works, double seconds);
  StageReport stream_stage(std::chrono::nanoseconds busy, double seconds) const;
  StageReport trainer_stage(double seconds) const;

  struct Levels {
    TimeWeightedMean free_slots;
    TimeWeightedMean ready_batches;
    TimeWeightedMean active_workers;
    /// 1 while the workers have no sample to begin, for lack of a free slot or of a plan; otherwise
    /// 0.
    TimeWeightedMean no_slot;
    TimeWeightedMean no_plan;
    void restart(Clock::time_point now);
  };

  std::shared_ptr<Trace> trace_;
  Lanes lanes_;
  const Clock::time_point started_;
  Clock::time_point since_;

  std::uint64_t batches_ = 0;
  std::uint64_t samples_ = 0;
  std::uint64_t copied_bytes_ = 0;
  double first_batch_seconds_ = 0;
  /// True up to the run's second batch, if the report includes the first one.
  bool starting_ = true;
  std::chrono::nanoseconds start_stall_{0};
  Histogram stall_;
  Histogram ahead_;
  std::chrono::nanoseconds stalled_{0};
  /// Times that the trainer spent between two calls of `next`, and when the last call returned.
  Histogram trainer_;
  Clock::time_point returned_;
  /// Total waits since `returned_`: for micro-batches, and in calls of `next` that timed out.
  std::chrono::nanoseconds micro_batch_waits_{0};
  std::chrono::nanoseconds timed_out_{0};
  StreamWorks copies_{.name = "copy", .span = "copy"};
  std::vector<StreamWorks> conversions_;
  Levels levels_;
  WorkerFigures base_;
};

}  // namespace millrace
