// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

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
};

struct TraceOptions {
  /// How many spans and values are kept over all lanes; further ones are only counted. Each takes
  /// 40 bytes, when it comes.
  std::size_t max_events = std::size_t{1} << 22;
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
  /// Adds a lane to a group; lanes are drawn in the order in which they were added. Throws `Error`
  /// (`invalid_argument`) if there is no such group.
  Lane& add_lane(std::size_t group, std::string name);

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
  /// Spans and values that were not kept because of `max_events`.
  std::uint64_t dropped() const;

  /// Writes the Trace Event Format that chrome://tracing and ui.perfetto.dev read: a JSON object
  /// whose "traceEvents" are a complete event ("X") per span, a counter event ("C") per value and
  /// metadata ("M") with the names. Times are in microseconds.
  void write_json(std::ostream& out) const;
  /// Writes the same into a file. Throws `Error` (`io`) if that fails.
  void write_json(const std::filesystem::path& path) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace
