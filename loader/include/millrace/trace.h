// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

namespace MILLRACE_API millrace {

// Threads: every method of a `Trace` and of its lanes may be called from any thread at once, but
// the spans of one lane are added by one thread at a time. Lifetimes: a lane lives as long as its
// trace, and a name given to a span must live as long, too. A pipeline shares its trace with the
// trainer, so either may go first. The structs here are plain data.

/// A stretch of time in which a lane did one thing. Times are nanoseconds since the trace began.
struct TraceSpan {
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  /// A text that lives as long as the trace: a literal, or one from `Trace::keep`.
  const char* name = "";
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  /// The batch, counted over all epochs from the run's position 0, and the record's index; `none`
  /// if the span belongs to no batch or to no record.
  std::uint64_t batch = none;
  std::uint64_t record = none;
};

/// The value of a counter from a time on.
struct TraceValue {
  std::int64_t at_ns = 0;
  std::int64_t value = 0;
};

/// A row of a trace: what one worker, thread, stream or counter did, in the order it was added.
struct TraceLane {
  /// The pipeline it belongs to, as numbered by `Trace::add_group`.
  std::size_t group = 0;
  std::string name;
  std::vector<TraceSpan> spans;
  std::vector<TraceValue> values;
  /// What kind of work its spans are: "plan", "make", "upload", "copy", "convert", "hand out",
  /// "step", or another of the trainer's.
  std::string category{};
  /// The thread's number in the operating system; 0 if it is no thread's.
  int thread = 0;
};

struct TraceOptions {
  /// How many spans and values are kept over all lanes; further ones are only counted. Each takes
  /// 40 bytes, when it comes.
  std::size_t max_events = std::size_t{1} << 22;
  /// Keep the newest instead of the first ones: then a lane that gets a further one gives up its
  /// oldest. For a trace of what led to the end of a long run.
  bool keep_newest = false;
  /// The names of the lanes whose spans and values are kept; empty = all lanes.
  std::vector<std::string> lanes{};
};

/// Every span of every stage of one or several pipelines, for a picture of time. Give it to a
/// pipeline by `DebugOptions::trace`; a trainer adds lanes of its own (the bench adds the
/// device's steps).
class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Trace(TraceOptions options = {});
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// One row. The spans of a lane should not overlap.
  class Lane {
   public:
    void add(const char* name, Clock::time_point begin, Clock::time_point end,
             std::uint64_t batch = TraceSpan::none, std::uint64_t record = TraceSpan::none);
    /// The spans are the calling thread's work. The first call counts.
    void runs_here();
    /// The lane is a counter that has `value` from `at` on.
    void set(Clock::time_point at, std::int64_t value);

    ~Lane();
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

   private:
    friend class Trace;
    struct State;
    explicit Lane(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };

  /// Adds a group of lanes that are drawn together, such as those of one pipeline, and returns its
  /// number, from 0.
  std::size_t add_group(std::string name);
  /// The newest group of that name, such as the one of the pipeline of that name; adds it if there
  /// is none.
  std::size_t group(const std::string& name);
  /// Adds a lane to a group; lanes are drawn in the order in which they were added. Throws `Error`
  /// (`invalid_argument`) if there is no such group. `category`: see `TraceLane`.
  Lane& add_lane(std::size_t group, std::string name, std::string category = "");

  /// Returns a copy of `name` that lives as long as the trace, for spans.
  const char* keep(const std::string& name);

  /// Forgets the spans and values so far, after a warm-up, and begins the trace anew; a counter
  /// keeps its last value.
  void clear();
  /// What begins from now on is not kept, until `clear`.
  void finish();

  /// A copy of what was traced so far.
  std::vector<TraceLane> lanes() const;
  std::vector<std::string> groups() const;
  /// Spans and values that were not kept, or given up, because of `max_events`.
  std::uint64_t dropped() const;

  /// Writes the Trace Event Format that chrome://tracing and ui.perfetto.dev read: a JSON object
  /// whose "traceEvents" are a complete event ("X") per span, a counter event ("C") per value,
  /// metadata ("M") with the names, and for each batch a flow ("s", "t", "f") through the last span
  /// of each category that names it: from its plan to the step. Process and threads have the
  /// operating system's numbers; what is no thread's has one above all of these. Times are in
  /// microseconds since the trace began, which "otherData" gives on CLOCK_MONOTONIC (Nsight's and
  /// perf's clock) and CLOCK_REALTIME in nanoseconds.
  void write_json(std::ostream& out) const;
  /// Writes the same into a file. Throws `Error` (`io`) if that fails.
  void write_json(const std::filesystem::path& path) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace
