// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/trace.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace millrace {

/// A copy of a trace at one moment.
struct TraceContents {
  std::vector<std::string> groups;
  std::vector<TraceLane> lanes;
  /// The trace's time 0, on the steady clock.
  std::int64_t start_ns = 0;
  std::uint64_t dropped = 0;
};

/// See `Trace::write_json`.
void write_trace_json(const TraceContents& trace, std::ostream& out);

}  // namespace millrace
