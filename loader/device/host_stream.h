// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/host_device.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "base/mutex.h"

namespace millrace {

/// Numbered points at which a `HostEvent` was recorded. Streams that still have the event in their
/// queue share ownership, so the event itself may be destroyed first.
class EventPoints {
 public:
  using Clock = std::chrono::steady_clock;

  /// Adds a new point, not reached yet, and returns its number.
  std::uint64_t record();
  /// Number of the last point recorded so far.
  std::uint64_t last() const;
  /// Marks `point` as passed by the stream, at `time` of the stream's clock.
  void reach(std::uint64_t point, Clock::time_point time);
  bool reached(std::uint64_t point) const;
  /// Sleeps until `point` is reached; returns false if `deadline` comes first.
  bool wait(std::uint64_t point, Clock::time_point deadline) const;
  /// Time at which the last reached point was reached.
  Clock::time_point time() const;

 private:
  mutable Mutex mutex_;
  mutable Condition reached_condition_;
  std::uint64_t recorded_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::uint64_t reached_ MILLRACE_GUARDED_BY(mutex_) = 0;
  Clock::time_point time_ MILLRACE_GUARDED_BY(mutex_){};
};

class HostEvent final : public Event {
 public:
  bool complete() const override { return points_->reached(points_->last()); }
  bool wait(std::chrono::nanoseconds timeout) const override {
    return points_->wait(points_->last(), deadline_after(timeout));
  }
  std::optional<std::chrono::steady_clock::time_point> passed_at() const override {
    return points_->time();
  }
  const std::shared_ptr<EventPoints>& points() const { return points_; }

 private:
  std::shared_ptr<EventPoints> points_ = std::make_shared<EventPoints>();
};

}  // namespace millrace
