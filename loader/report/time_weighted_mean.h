// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace millrace {

/// A number that changes over time, and its time-weighted mean. One thread at a time may use it.
class TimeWeightedMean {
 public:
  using Clock = std::chrono::steady_clock;

  explicit TimeWeightedMean(double value = 0) : value_(value) {}

  /// Sets the number from `now` on. `now` must not be before that of the last call.
  void set(Clock::time_point now, double value) {
    sum_ = sum(now);
    since_ = now;
    value_ = value;
  }
  double value() const { return value_; }

  /// Forgets the past and keeps the current number.
  void restart(Clock::time_point now) {
    sum_ = 0;
    begin_ = since_ = now;
  }

  /// Integral of the number over the time since the beginning, in seconds.
  double sum(Clock::time_point now) const {
    return sum_ + value_ * std::chrono::duration<double>(now - since_).count();
  }
  double mean(Clock::time_point now) const {
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    return seconds > 0 ? sum(now) / seconds : value_;
  }

 private:
  double value_;
  double sum_ = 0;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point since_ = begin_;
};

}  // namespace millrace
