// SPDX-License-Identifier: Apache-2.0
#include "device/event_clock.h"

#include <algorithm>

namespace millrace {
namespace {

/// From one event to a later one; none where one has not passed or was not recorded.
std::optional<std::chrono::nanoseconds> between(cudaEvent_t from, cudaEvent_t to) {
  float milliseconds = 0;
  const OutsideCaptures outside_captures;
  if (cudaEventElapsedTime(&milliseconds, from, to) != cudaSuccess) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<float, std::milli>(milliseconds));
}

}  // namespace

EventClock::EventClock(int device, std::chrono::nanoseconds renewal)
    : device_(device), renewal_(renewal), stream_(device) {
  const CurrentDevice current(device);
  anchor_ = make_event_handle(cudaEventDefault);
  next_ = make_event_handle(cudaEventDefault);
  Clock::time_point asked = Clock::now();
  check(cudaEventRecord(anchor_.get(), stream_.handle()), "cudaEventRecord");
  for (;;) {
    const bool passed = has_passed(anchor_.get());
    anchored_at_ = asked + (Clock::now() - asked) / 2;
    if (passed) return;
    asked = Clock::now();
  }
}

std::optional<EventClock::Clock::time_point> EventClock::time_of(cudaEvent_t event) {
  std::lock_guard lock(mutex_);
  renew();
  if (!has_passed(event)) return std::nullopt;
  const auto since = between(anchor_.get(), event);
  if (!since) return std::nullopt;
  return anchored_at_ + *since;
}

void EventClock::renew() {
  if (renewing_since_) {
    // Asked first: the time to an event that has not passed is an error, which CUDA would keep for
    // the caller's own thread.
    if (!has_passed(next_.get())) return;  // the old anchor still serves
    const auto since = between(anchor_.get(), next_.get());
    if (!since) return;
    // The device's clock may go a little faster or slower than the host's.
    anchored_at_ = std::clamp(anchored_at_ + *since, *renewing_since_, Clock::now());
    std::swap(anchor_, next_);
    renewing_since_.reset();
  } else if (const Clock::time_point now = Clock::now(); now - anchored_at_ > renewal_) {
    const CurrentDevice current(device_);
    check(cudaEventRecord(next_.get(), stream_.handle()), "cudaEventRecord");
    renewing_since_ = now;
  }
}

}  // namespace millrace
