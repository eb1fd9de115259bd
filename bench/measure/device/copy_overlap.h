// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/trace.h>

#include <optional>
#include <vector>

namespace millrace::cli {

/// Of the time that `copies` take between the first step's begin and the last one's end, the share
/// that lies under `steps`, 0 to 1: those copies cost nothing. None where there is no such time.
/// Spans may come in any order and overlap.
std::optional<double> hidden_share(const std::vector<TraceSpan>& copies,
                                   const std::vector<TraceSpan>& steps);

}  // namespace millrace::cli
