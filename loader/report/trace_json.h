// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/trace.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace millrace {

/// The Trace Event Format (JSON object form), see `Trace::write_json`.
void write_trace_json(std::ostream& out, const std::vector<std::string>& groups,
                      const std::vector<TraceLane>& lanes, std::uint64_t dropped);

}  // namespace millrace
