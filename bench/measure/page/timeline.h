// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/trace.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/page/page.h"

namespace millrace::cli {

/// A copy of a trace's contents. The names of spans live as long as the trace.
struct TracePicture {
  std::vector<std::string> groups{};
  std::vector<TraceLane> lanes{};
  std::uint64_t dropped = 0;
};

TracePicture picture_of(const Trace& trace);

/// Limits for a timeline.
struct TimelineLimits {
  /// Number of spans and counter values; each takes 20 to 40 bytes of the page.
  std::size_t events = 25'000;
  std::int64_t nanoseconds = 3'000'000'000;
  /// Lanes of a group named "worker 0", "worker 1" ...
  std::size_t worker_lanes = 48;
};

/// Makes a section of the interval with the longest stall of a trainer, or of the last interval if
/// no stall lasts a millisecond. Spans of a lane are bars and values of a counter are a curve;
/// tables have their totals. The text says what is shown and what is left out. An empty trace gives
/// neither chart nor tables.
Section timeline_section(const TracePicture& picture, const TimelineLimits& limits = {});

}  // namespace millrace::cli
