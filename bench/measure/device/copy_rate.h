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

/// Rate of copies to the device, of a pipeline's micro-batches or of plain copies.
struct CopyRate {
  /// Mean size of a copy.
  double bytes = 0;
  double bytes_per_second = 0;
};

/// Rate of a report's copies: bytes over the device's time for them, by its events. `uploads` is
/// the number of copies that `copied_bytes` counts; some of them may be unfinished. Nullopt if
/// nothing was copied or the device cannot measure times.
std::optional<CopyRate> copy_rate(const Report& report, std::size_t uploads);

/// Host memory for `buffers` plain copies of `bytes` each, in bytes.
std::size_t plain_copy_memory(std::size_t bytes, std::size_t buffers);

/// Bytes per second of plain copies.
struct CopyRates {
  /// Each copy begins as soon as the one before has ended.
  double at_once = 0;
  /// Each copy begins 3 ms after the one before has ended, as a pipeline copies once per step. Its
  /// time includes about 20 us by which a thread is slower at enqueuing after a sleep.
  double paced = 0;
};

/// Median rates of loops of plain copies of `bytes` (at least 1) each, from `source` to the device.
/// Each copy is timed on its own, as in a pipeline, and no other copies run. Nullopt if the device
/// cannot measure times. Copies cycle through `source`, which has `plain_copy_memory` bytes and is
/// overwritten. It takes a fraction of a second, and as much device memory as `source`.
std::optional<CopyRates> plain_copy_rates(Device& device, const Memory& source, std::size_t bytes);

/// All spans with this name in the lanes with this name.
std::vector<TraceSpan> spans_of(const Trace& trace, std::string_view lane, std::string_view name);

/// Share of the copies' time that overlaps with `steps`, 0 to 1: this time costs nothing. Only the
/// time of copies between the first step's begin and the last one's end counts. Nullopt if that is
/// 0. Spans may be unordered and overlap.
std::optional<double> hidden_share(const std::vector<TraceSpan>& copies,
                                   const std::vector<TraceSpan>& steps);

}  // namespace millrace::cli
