// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/cuda_device.h>

#include <chrono>
#include <mutex>
#include <optional>

#include "device/cuda_call.h"

namespace millrace {

/// Converts the times at which a device passed its events to the host's steady clock. CUDA only
/// gives the time between two events: milliseconds of the device's clock as a float, whose
/// resolution falls as the time grows. So the clock keeps an anchor: an event whose time on the
/// host is known. It renews the anchor regularly, and reads the host's clock shortly before and
/// after the new anchor passes. All methods may be called by several threads at the same time. The
/// constructor waits for the device, the other methods at most 200 us.
class EventClock {
 public:
  using Clock = std::chrono::steady_clock;
  /// Age at which the anchor is renewed. A float of up to 4,000 milliseconds resolves microseconds.
  static constexpr std::chrono::seconds default_renewal{4};

  static constexpr std::chrono::seconds default_patience{10};

  /// Waits until the device has passed the first anchor. Throws `Error` (`device`), also if the
  /// device takes longer than `patience`.
  explicit EventClock(int device, std::chrono::nanoseconds renewal = default_renewal,
                      std::chrono::nanoseconds patience = default_patience);

  /// Time at which the device passed `event`, which must have timing and be complete; nullopt if
  /// CUDA cannot tell.
  std::optional<Clock::time_point> time_of(cudaEvent_t event);

 private:
  void renew();
  /// Makes the next anchor, which has just passed, the current anchor.
  void take_next();

  const int device_;
  const std::chrono::nanoseconds renewal_;
  /// Has the highest priority, so that its events do not wait behind the trainer's kernels.
  CudaStream stream_;
  std::mutex mutex_;
  EventHandle anchor_;
  Clock::time_point anchored_at_;
  EventHandle next_;
  /// Time at which the next anchor was recorded; set until it has passed.
  std::optional<Clock::time_point> renewing_since_;
  /// Number of consecutive anchors that did not pass at once.
  int late_anchors_ = 0;
};

}  // namespace millrace
