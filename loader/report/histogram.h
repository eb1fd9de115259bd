// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/report.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace {

/// Durations counted in buckets of which each is at most 1/128 wider than the one before
/// (log-linear, as in HdrHistogram), so that percentiles are exact to 1% at fixed memory. Not for
/// two threads at once.
class Histogram {
 public:
  Histogram();
  /// Of more than two hours counts as two hours.
  void add(std::chrono::nanoseconds duration);
  Durations summary() const;
  void clear();
  /// Takes away what was counted before: an earlier state of this one. The largest value is then
  /// known to 1%.
  void subtract(const Histogram& earlier);

 private:
  friend class SharedHistogram;
  double percentile_ms(double percent) const;

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t total_ns_ = 0;
  std::uint64_t max_ns_ = 0;
};

/// The same for one thread that adds while others look at it.
class SharedHistogram {
 public:
  SharedHistogram();
  void add(std::chrono::nanoseconds duration);
  /// Adds what was counted so far to `sum`.
  void add_to(Histogram& sum) const;

 private:
  // Counts that order nothing; one thread writes them.
  std::vector<std::atomic<std::uint64_t>> counts_;
  std::atomic<std::uint64_t> total_ns_{0};
  std::atomic<std::uint64_t> max_ns_{0};
};

}  // namespace millrace
