// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <memory>
#include <type_traits>
#include <utility>

#include "cuda_check.h"

/// Tells what share of the time a stream had no steps to run, by CUDA events around them. A step's
/// begin is recorded behind the stream's wait for its data, so that the wait counts as idle.
class StreamClock {
 public:
  explicit StreamClock(cudaStream_t stream) : stream_(stream) {}

  void begin() {
    collect();
    if (done_.size() > 1) {  // of steps long past; the last one's end is still needed
      steps_.push_back(std::move(done_.front()));
      done_.pop_front();
    } else {
      steps_.push_back({make_event(), make_event()});
    }
    check(cudaEventRecord(steps_.back().begin.get(), stream_), "cudaEventRecord");
  }

  void end() { check(cudaEventRecord(steps_.back().end.get(), stream_), "cudaEventRecord"); }

  /// From the first step to the last of those that are over. 0 without steps.
  double idle() {
    collect();
    return idle_ms_ > 0 ? idle_ms_ / (idle_ms_ + busy_ms_) : 0;
  }

  /// The time from the first step's begin to the last one's end of those that are over.
  double seconds() {
    collect();
    return (idle_ms_ + busy_ms_) / 1000;
  }

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  };
  using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy>;
  struct Step {
    Event begin;
    Event end;
  };

  static Event make_event() {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDefault), "cudaEventCreateWithFlags");
    return Event(event);
  }

  static double milliseconds(const Event& from, const Event& to) {
    float elapsed = 0;
    check(cudaEventElapsedTime(&elapsed, from.get(), to.get()), "cudaEventElapsedTime");
    return elapsed;
  }

  /// The runtime keeps "not ready" as the thread's last error, though it is none.
  static bool passed(const Event& event) {
    const cudaError_t status = cudaEventQuery(event.get());
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check(status, "cudaEventQuery");
    return true;
  }

  /// Adds up the steps that are over, without waiting for others.
  void collect() {
    while (!steps_.empty() && passed(steps_.front().end)) {
      if (!done_.empty()) idle_ms_ += milliseconds(done_.back().end, steps_.front().begin);
      busy_ms_ += milliseconds(steps_.front().begin, steps_.front().end);
      done_.push_back(std::move(steps_.front()));
      steps_.pop_front();
    }
  }

  cudaStream_t stream_;
  std::deque<Step> steps_;  ///< that are not over
  std::deque<Step> done_;   ///< the last one, and events to be used again
  double busy_ms_ = 0;
  double idle_ms_ = 0;
};
