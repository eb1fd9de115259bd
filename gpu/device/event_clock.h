// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/cuda_device.h>

#include <chrono>
#include <mutex>
#include <optional>

#include "device/cuda_call.h"

namespace millrace {

/// Tells when a device passed its events, on the host's steady clock. CUDA tells the time between
/// two events only, in a float of milliseconds, which grows coarse with the distance, and by its
/// own clock; so there is an anchor, an event whose time on the host is known, and it is renewed
/// from time to time, between two readings of the host's clock that lie close together. All methods
/// may be called from any thread at once. The constructor waits for the device, the others 200 us
/// at most.
class EventClock {
 public:
  using Clock = std::chrono::steady_clock;
  /// Anchors older than this are renewed: a float of so many milliseconds tells microseconds apart.
  static constexpr std::chrono::seconds default_renewal{4};

  static constexpr std::chrono::seconds default_patience{10};

  /// Waits until the device has passed the first anchor. Throws `Error` (`device`), also where it
  /// has not within `patience`.
  explicit EventClock(int device, std::chrono::nanoseconds renewal = default_renewal,
                      std::chrono::nanoseconds patience = default_patience);

  /// When the device passed `event`, which has timing and is complete; none where CUDA does not
  /// tell.
  std::optional<Clock::time_point> time_of(cudaEvent_t event);

 private:
  void renew();
  /// The next anchor, which has passed just now, becomes the anchor.
  void take_next();

  const int device_;
  const std::chrono::nanoseconds renewal_;
  /// Urgent: its events do not wait behind the trainer's kernels.
  CudaStream stream_;
  std::mutex mutex_;
  EventHandle anchor_;
  Clock::time_point anchored_at_;
  EventHandle next_;
  /// When the next anchor was recorded, while it has not passed.
  std::optional<Clock::time_point> renewing_since_;
  /// How many in a row have not passed at once.
  int late_anchors_ = 0;
};

}  // namespace millrace
