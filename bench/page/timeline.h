// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/trace.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "page/page.h"

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
  /// Spans and values of counters; each takes 20 to 40 bytes of the page.
  std::size_t events = 25'000;
  std::int64_t nanoseconds = 3'000'000'000;
  /// Lanes named "worker 0", "worker 1" ... of a group.
  std::size_t worker_lanes = 48;
};

/// The stretch of a trace with the longest stall of a trainer (the last stretch, if none took a
/// millisecond): a lane's spans as bars and a counter's values as a curve, and in tables what each
/// did in it. The text says what is shown and what was left out. An empty trace has neither chart
/// nor tables.
Section timeline_section(const TracePicture& picture, const TimelineLimits& limits = {});

}  // namespace millrace::cli
