// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/report.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace millrace {

/// Histogram of durations in log-linear buckets, as in HdrHistogram. Each bucket is at most 1/128
/// wider than the one before, so percentiles are exact to 1% with fixed memory. One thread at a
/// time may use it; other threads may call `add_to` while it calls `add`.
class Histogram {
 public:
  Histogram();
  /// Counts a duration; it saturates at two hours.
  void add(std::chrono::nanoseconds duration);
  /// Adds the counts so far to `sum`.
  void add_to(Histogram& sum) const;
  Durations summary() const;
  void clear() { subtract(*this); }
  /// Subtracts an earlier state of this histogram. The largest value is then known to 1%.
  void subtract(const Histogram& earlier);

 private:
  double percentile_ms(double percent) const;

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t total_ns_ = 0;
  std::uint64_t max_ns_ = 0;
};

}  // namespace millrace
