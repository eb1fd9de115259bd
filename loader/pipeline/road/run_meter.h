// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/report.h>
#include <millrace/trace.h>

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
#include "report/level.h"

namespace millrace {

/// What the road's state is at a moment.
struct RoadState {
  std::size_t free_slots = 0;
  /// Batches that are made and were not handed out.
  std::size_t ready_batches = 0;
  /// No sample is planned that no worker has begun.
  bool nothing_to_begin = true;
};

/// Counts of what workers did. Each worker adds to its own; whoever reports sums them up.
struct WorkCounts {
  std::uint64_t samples = 0;
  std::uint64_t encoded_bytes = 0;
  std::map<std::string, std::uint64_t> ways{};
  std::map<std::string, std::uint64_t> way_ns{};
  CacheReport cache{};
  /// Per sample: "read", then the transform's stages.
  std::vector<Histogram> stages{};
};

/// Samples made on a NUMA node: by its workers in whatever slots, by its workers in other nodes'
/// slots, by others in its slots.
struct NodeFigures {
  std::uint64_t by_workers = 0;
  std::uint64_t elsewhere = 0;
  std::uint64_t by_helpers = 0;
};

/// What the crew has done so far.
struct CrewFigures {
  WorkCounts work{};
  std::vector<NodeFigures> nodes{};
  /// See `WorkerPool::delay`.
  std::optional<std::chrono::nanoseconds> delay{};
};

/// Measures everything on the road but the workers' samples: waits, copies, levels. Adds it up for
/// the report, keeps the figures that the report is counted from, and writes spans into the trace
/// if there is one. The road guards it by its mutex; a copy can be read without that.
class RunMeter {
 public:
  using Clock = std::chrono::steady_clock;

  /// A call of `next`: when it was asked for a batch and got it, and when that batch had got its
  /// host slot and waited for its device slot (both may lie outside the call).
  struct HandOut {
    Clock::time_point asked;
    Clock::time_point got;
    Clock::time_point planned_at;
    Clock::time_point slot_wait_begin;
    Clock::time_point slot_wait_end;
    std::uint64_t batch = 0;
    std::size_t samples = 0;
  };
  /// A micro-batch's copy or conversion: when the micro-batch was there for it, and the work
  /// itself.
  struct StreamWork {
    Clock::time_point there_at;
    Clock::time_point begin;
    Clock::time_point end;
    std::uint64_t batch = 0;
  };

  /// Adds its lanes to `group` of `trace`, whose ownership it shares: whoever writes into a lane
  /// holds the road, and the road the meter. Without a trace nothing is traced. `converts`: there
  /// are conversions.
  RunMeter(std::shared_ptr<Trace> trace, std::size_t group, bool converts,
           Clock::time_point started);

  /// The memory is taken and work begins; what is measured against the whole time goes on from
  /// `started`.
  void begin(Clock::time_point now, CrewFigures base);
  /// Everything begins anew, but `stalled`.
  void restart(Clock::time_point now, CrewFigures base);
  /// The same, now. Returns what was measured before, and until when.
  std::pair<RunMeter, Clock::time_point> take(CrewFigures base);

  void note(Clock::time_point now, const RoadState& state);
  void note_workers(Clock::time_point now, unsigned active) {
    set(lanes_.active_workers, levels_.active_workers, now, active);
  }
  void planned(Clock::time_point begin, Clock::time_point end, std::uint64_t batch) {
    if (lanes_.planner != nullptr) lanes_.planner->runs_here();
    add(lanes_.planner, "plan", begin, end, batch);
  }
  /// The feeder did.
  void waited(const char* what, Clock::time_point begin, Clock::time_point end,
              std::uint64_t batch) {
    add(lanes_.feeder, what, begin, end, batch);
  }
  void uploaded(Clock::time_point begin, Clock::time_point end, std::uint64_t batch,
                std::size_t bytes);
  void copied(const StreamWork& copy) { add(copies_, lanes_.copies, "copy", copy); }
  void converted(const StreamWork& conversion) {
    add(conversions_, lanes_.conversions, "convert", conversion);
  }
  void handed_out(const HandOut& hand_out);
  void waited_for_micro_batch(Clock::time_point asked, Clock::time_point got, std::uint64_t batch);

  /// What the trainer has waited for data since the run began.
  std::chrono::nanoseconds stalled() const { return stalled_; }
  /// What the crew had done when the report began.
  const CrewFigures& base() const { return base_; }

  /// Writes its numbers into a report that has those of the workers' stages already, with their
  /// busy times; `crew` is what the crew has done by now.
  void fill(Report& report, const CrewFigures& crew, Clock::time_point now) const;

 private:
  struct Lanes {
    Trace::Lane* planner = nullptr;
    Trace::Lane* feeder = nullptr;
    Trace::Lane* copies = nullptr;
    Trace::Lane* conversions = nullptr;
    Trace::Lane* trainer = nullptr;
    Trace::Lane* free_slots = nullptr;
    Trace::Lane* ready_batches = nullptr;
    Trace::Lane* active_workers = nullptr;
  };

  /// A stream of the device's that works on micro-batches.
  struct StreamWorks {
    Histogram each;
    bool timed = false;
    Clock::time_point last_end;
    double waits_seconds = 0;
  };

  void add(StreamWorks& works, Trace::Lane* lane, const char* name, const StreamWork& work);
  static void add(Trace::Lane* lane, const char* name, Clock::time_point begin,
                  Clock::time_point end, std::uint64_t batch);
  static void set(Trace::Lane* lane, Level& level, Clock::time_point now, double value);
  void add_stall(std::chrono::nanoseconds waited);
  void fill_workers(Report& report, Clock::time_point now) const;
  static StageReport stage_of(const StreamWorks& works, const char* name, double seconds);
  StageReport trainer_stage(double seconds) const;

  struct Levels {
    Level free_slots;
    Level ready_batches;
    Level active_workers;
    /// 1 while the workers have nothing to begin: for want of a free slot, or of a plan.
    Level no_slot;
    Level no_plan;
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
  /// Up to the run's second batch, if the report has its first.
  bool starting_ = true;
  std::chrono::nanoseconds start_stall_{0};
  Histogram stall_;
  Histogram ahead_;
  std::chrono::nanoseconds stalled_{0};
  /// Between two calls of `next`, and when the last one returned.
  Histogram trainer_;
  Clock::time_point returned_;
  std::chrono::nanoseconds micro_batch_waits_{0};
  StreamWorks copies_;
  StreamWorks conversions_;
  Levels levels_;
  CrewFigures base_;
};

}  // namespace millrace
