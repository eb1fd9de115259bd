// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/report.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace millrace {

/// Durations counted in buckets of which each is at most 1/128 wider than the one before
/// (log-linear, as in HdrHistogram), so that percentiles are exact to 1% at fixed memory. One thread
/// at a time may use it; others may call `add_to` while it adds.
class Histogram {
 public:
  Histogram();
  /// Counts a duration; one of more than two hours counts as two hours.
  void add(std::chrono::nanoseconds duration);
  /// Adds what was counted so far to `sum`.
  void add_to(Histogram& sum) const;
  Durations summary() const;
  void clear() { subtract(*this); }
  /// Takes away an earlier state of this histogram. The largest value is then known to 1%.
  void subtract(const Histogram& earlier);

 private:
  double percentile_ms(double percent) const;

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t total_ns_ = 0;
  std::uint64_t max_ns_ = 0;
};

}  // namespace millrace
