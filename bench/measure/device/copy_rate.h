// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device.h>
#include <millrace/report.h>
#include <millrace/topology.h>
#include <millrace/trace.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace millrace::cli {

/// Copies to the device, as a pipeline's micro-batches were copied or as they can be at best.
struct CopyRate {
  /// Of one copy, on average.
  double bytes = 0;
  double bytes_per_second = 0;
};

/// What a report's copies reached: bytes over the time that the device spent on them, by its
/// events. `uploads` says how many copies its bytes are of; some of them may not be over.
/// Nullopt if nothing was copied or the device tells no times.
std::optional<CopyRate> copy_rate(const Report& report, std::size_t uploads);

/// Host memory that `buffers` plain copies of `bytes` each take, in bytes.
std::size_t plain_copy_memory(std::size_t bytes, std::size_t buffers);

/// Bytes per second of plain copies.
struct CopyRates {
  /// Each begins as soon as the one before is over.
  double at_once = 0;
  /// Each begins 3 ms after the one before has ended, as a pipeline's copies come once in a step. A
  /// thread that has slept takes some 20 us longer to hand a copy over, behind the event before it.
  double paced = 0;
};

/// Medians of a few plain loops of copies of `bytes` (at least 1) each, from `source` to the
/// device, with no other copies under way and each timed for itself, as the pipeline's are; nullopt
/// if the device tells no times. Copies take the pieces of `source` in turn; its size is
/// `plain_copy_memory`, its contents are overwritten. It takes a fraction of a second, and as much
/// memory of the device.
std::optional<CopyRates> plain_copy_rates(Device& device, const Memory& source, std::size_t bytes);

/// All spans of a name in the lanes of a name.
std::vector<TraceSpan> spans_of(const Trace& trace, std::string_view lane, std::string_view name);

/// Of the time that `copies` take between the first step's begin and the last one's end, the share
/// that lies under `steps`, 0 to 1: those copies cost nothing. Nullopt if there is no such time.
/// Spans may come in any order and overlap.
std::optional<double> hidden_share(const std::vector<TraceSpan>& copies,
                                   const std::vector<TraceSpan>& steps);

}  // namespace millrace::cli
