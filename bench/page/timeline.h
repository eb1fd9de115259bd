// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/trace.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace::cli {

/// What a trace holds, copied out of it; names of spans live as long as the trace.
struct TracePicture {
  std::vector<std::string> groups{};
  std::vector<TraceLane> lanes{};
  std::uint64_t dropped = 0;
};

TracePicture picture_of(const Trace& trace);

/// How much of a trace a timeline shows.
struct TimelineLimits {
  /// Spans and values of counters; 20 to 40 bytes of the page each.
  std::size_t events = 25'000;
  std::int64_t nanoseconds = 3'000'000'000;
  /// Lanes named "worker 0", "worker 1" ... of a group.
  std::size_t worker_lanes = 48;
};

/// A drawing of a trace's last stretch of time.
struct Timeline {
  /// Markup; page.js adds zoom and details to it.
  std::string html;
  /// What is shown and what was left out, in a sentence or two.
  std::string text;
};

/// A row per lane, with a bar per span, and a curve per counter. Nothing is shown of an empty
/// trace.
Timeline draw_timeline(const TracePicture& picture, const TimelineLimits& limits = {});

}  // namespace millrace::cli
