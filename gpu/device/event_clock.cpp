// SPDX-License-Identifier: Apache-2.0
#include "device/event_clock.h"

#include <algorithm>
#include <string>
#include <thread>

namespace millrace {
namespace {

/// Polling interval for the first anchor if it has not passed at once.
constexpr std::chrono::microseconds anchor_pause{50};
/// Longest delay between recording and passing of an anchor whose time on the host counts as exact.
constexpr std::chrono::microseconds at_once{200};
/// Number of successive late anchors after which one is used nevertheless: by then the drift of the
/// device's clock is larger than the error of a late anchor.
constexpr int max_late_anchors = 16;

/// Time from one event of the current device to another; nullopt if one has not passed or was not
/// recorded.
std::optional<std::chrono::nanoseconds> between(cudaEvent_t from, cudaEvent_t to) {
  const std::optional<float> milliseconds = milliseconds_between(from, to);
  if (!milliseconds) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<float, std::milli>(*milliseconds));
}

[[noreturn]] void give_up(int device, std::chrono::nanoseconds waited) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(waited);
  throw Error(ErrorCode::device,
              "cuda:" + std::to_string(device) +
                  ": the event that sets the device's clock has not passed within " +
                  std::to_string(milliseconds.count()) +
                  " ms, on a stream that has nothing else to do; the GPU hangs or another program "
                  "keeps it: look at nvidia-smi");
}

}  // namespace

EventClock::EventClock(int device, std::chrono::nanoseconds renewal,
                       std::chrono::nanoseconds patience)
    : device_(device), renewal_(renewal), stream_(device, true) {
  const CurrentDevice current(device);
  anchor_ = make_event_handle(cudaEventDefault);
  next_ = make_event_handle(cudaEventDefault);
  const Clock::time_point begin = Clock::now();
  Clock::time_point asked = begin;
  check(cudaEventRecord(anchor_.get(), stream_.handle()), "cudaEventRecord");
  for (;;) {
    const bool passed = has_passed(anchor_.get());
    const Clock::time_point now = Clock::now();
    anchored_at_ = asked + (now - asked) / 2;
    if (passed) return;
    if (now - begin > patience) give_up(device, now - begin);
    asked = now;
    if (now - begin > at_once)
      std::this_thread::sleep_for(anchor_pause);
    else
      std::this_thread::yield();
  }
}

std::optional<EventClock::Clock::time_point> EventClock::time_of(cudaEvent_t event) {
  const CurrentDevice current(device_);
  std::lock_guard lock(mutex_);
  renew();
  if (!has_passed(event)) return std::nullopt;
  const auto since = between(anchor_.get(), event);
  if (!since) return std::nullopt;
  return anchored_at_ + *since;
}

void EventClock::renew() {
  if (renewing_since_) {
    if (!has_passed(next_.get())) return;  // the old anchor is still used
    if (++late_anchors_ >= max_late_anchors) return take_next();
    renewing_since_.reset();  // the time at which the next anchor passed is unknown
  } else if (Clock::now() - anchored_at_ <= renewal_) {
    return;
  }
  const Clock::time_point since = Clock::now();
  check(cudaEventRecord(next_.get(), stream_.handle()), "cudaEventRecord");
  renewing_since_ = since;
  while (!has_passed(next_.get())) {
    if (Clock::now() - since > at_once) return;
    std::this_thread::yield();
  }
  take_next();
}

void EventClock::take_next() {
  const auto since = between(anchor_.get(), next_.get());
  if (!since) return;
  // The device's clock may be slightly faster or slower than the host's.
  anchored_at_ = std::clamp(anchored_at_ + *since, *renewing_since_, Clock::now());
  std::swap(anchor_, next_);
  renewing_since_.reset();
  late_anchors_ = 0;
}

}  // namespace millrace
