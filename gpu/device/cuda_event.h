// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device.h>

#include <memory>

#include "device/cuda_call.h"
#include "device/event_clock.h"

namespace millrace {

/// A CUDA event. Waiting polls the event and never synchronises with the device.
class CudaEvent final : public Event {
 public:
  /// With a clock, `passed_at` returns the time.
  explicit CudaEvent(int device, std::shared_ptr<EventClock> clock = nullptr);

  bool complete() const override;
  bool wait(std::chrono::nanoseconds timeout) const override;
  std::optional<std::chrono::steady_clock::time_point> passed_at() const override;

  cudaEvent_t handle() const { return event_.get(); }

 private:
  int device_;
  std::shared_ptr<EventClock> clock_;
  EventHandle event_;
};

}  // namespace millrace
