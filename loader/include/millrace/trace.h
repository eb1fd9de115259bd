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

// Threads: every method of a `Trace` and of its lanes may be called by several threads at the same
// time. However, only one thread at a time may add spans to one lane. Lifetimes: a lane lives as
// long as its trace. A span's name must also live as long as the trace. A pipeline and the trainer
// share ownership of the trace. The structs here are plain data.

/// A span of time in which a lane did one thing. Times are nanoseconds since the trace began.
struct TraceSpan {
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  /// Name of the span. It must live as long as the trace: a literal, or a text from `Trace::keep`.
  const char* name = "";
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  /// Number of the batch, counted over all epochs from the run's position 0. `none` if the span
  /// does not belong to a batch.
  std::uint64_t batch = none;
  /// Index of the record. `none` if the span does not belong to a record.
  std::uint64_t record = none;
};

/// A change of a counter. The counter has `value` from `at_ns` on.
struct TraceValue {
  std::int64_t at_ns = 0;
  std::int64_t value = 0;
};

/// A row of a trace: the spans of one worker, thread or stream, or the values of a counter, in the
/// order in which they were added.
struct TraceLane {
  /// Number of its group, from `Trace::add_group`. A group is usually one pipeline.
  std::size_t group = 0;
  std::string name;
  std::vector<TraceSpan> spans;
  std::vector<TraceValue> values;
  /// Kind of work of its spans: "plan", "make", "upload", "copy", "convert", "hand out", "step", or
  /// a kind that the trainer adds.
  std::string category{};
  /// The thread's number in the operating system; 0 if the lane does not belong to a thread.
  int thread = 0;
};

struct TraceOptions {
  /// Maximal number of spans and values to keep over all lanes; further ones are only counted. A
  /// span takes 40 bytes and a value 16, allocated when it is added.
  std::size_t max_events = std::size_t{1} << 22;
  /// Keep the newest events instead of the first: a lane that gets a new event drops its oldest
  /// one. If that lane has no event, the oldest event of another lane is dropped, if possible of a
  /// lane with several events. Use this option to trace the end of a long run.
  bool keep_newest = false;
  /// Names of the lanes to record; empty = all lanes.
  std::vector<std::string> lanes{};
};

/// Records the spans of all stages of one or several pipelines, for a timeline.
/// `DebugOptions::trace` gives it to a pipeline. A trainer may add lanes of its own, such as the
/// device's steps.
class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Trace(TraceOptions options = {});
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// One row of the trace. The spans of a lane should not overlap.
  class Lane {
   public:
    void add(const char* name, Clock::time_point begin, Clock::time_point end,
             std::uint64_t batch = TraceSpan::none, std::uint64_t record = TraceSpan::none);
    /// Declares that the lane's spans are work of the calling thread. Only the first call has an
    /// effect.
    void set_current_thread();
    /// Sets the value of a counter from `at` on. The lane is then a counter.
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

  /// Adds a group of lanes that are drawn together, such as those of one pipeline. Returns its
  /// number, from 0.
  std::size_t add_group(std::string name);
  /// Returns the newest group of that name, for example the group of the pipeline of that name.
  /// Adds a group if the name is new.
  std::size_t group(const std::string& name);
  /// Adds a lane to a group. Lanes are drawn in the order in which they were added. Throws `Error`
  /// (`invalid_argument`) if the group does not exist. `category`: see `TraceLane`.
  Lane& add_lane(std::size_t group, std::string name, std::string category = "");

  /// Returns a copy of `name` that lives as long as the trace, for spans.
  const char* keep(const std::string& name);

  /// Deletes all spans and values and restarts the trace's time. Call it after a warm-up. A counter
  /// keeps its last value.
  void clear();
  /// Stops recording: spans and values that begin later are not kept, until `clear`.
  void finish();

  /// Returns a copy of everything recorded so far.
  std::vector<TraceLane> lanes() const;
  std::vector<std::string> groups() const;
  /// Number of spans and values that `max_events` excluded: they were not kept, or were dropped
  /// later.
  std::uint64_t dropped() const;

  /// Writes the Trace Event Format, which chrome://tracing and ui.perfetto.dev read. It is a JSON
  /// object whose "traceEvents" contain:
  /// - for each span a complete event ("X"), and for each value a counter event ("C");
  /// - metadata ("M") with the names;
  /// - for each batch a flow ("s", "t", "f") from plan to step. It links one span of each category:
  ///   the batch's span that ends last.
  /// Process and threads have the operating system's numbers; other lanes have higher numbers.
  /// Times are in microseconds since the trace began. "otherData" has the time when the trace
  /// began, in nanoseconds on two clocks: CLOCK_MONOTONIC (Nsight's and perf's clock) and
  /// CLOCK_REALTIME.
  void write_json(std::ostream& out) const;
  /// Writes the same to a file. Throws `Error` (`io`) on failure.
  void write_json(const std::filesystem::path& path) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace
