// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <memory>
#include <type_traits>
#include <utility>

#include "cuda_check.h"

/// Measures the share of time in which a stream has no steps to run, by CUDA events around them. A
/// step's begin is recorded behind the stream's wait for its data, so the wait counts as idle.
class StreamClock {
 public:
  explicit StreamClock(cudaStream_t stream) : stream_(stream) {}

  void begin() {
    collect();
    if (done_.size() > 1) {  // events of a finished step; the last step's end is still needed
      steps_.push_back(std::move(done_.front()));
      done_.pop_front();
    } else {
      steps_.push_back({make_event(), make_event()});
    }
    check(cudaEventRecord(steps_.back().begin.get(), stream_), "cudaEventRecord");
  }

  void end() { check(cudaEventRecord(steps_.back().end.get(), stream_), "cudaEventRecord"); }

  /// Idle share of the time from the first step to the last finished one. 0 without steps.
  double idle() {
    collect();
    return idle_ms_ > 0 ? idle_ms_ / (idle_ms_ + busy_ms_) : 0;
  }

  /// Seconds from the first step's begin to the end of the last finished step.
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

  /// Whether an event has passed. Clears "not ready", which the runtime keeps as the thread's last
  /// error although it is a normal result.
  static bool passed(const Event& event) {
    const cudaError_t status = cudaEventQuery(event.get());
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check(status, "cudaEventQuery");
    return true;
  }

  /// Adds up the finished steps, without waiting for others.
  void collect() {
    while (!steps_.empty() && passed(steps_.front().end)) {
      if (!done_.empty()) idle_ms_ += milliseconds(done_.back().end, steps_.front().begin);
      busy_ms_ += milliseconds(steps_.front().begin, steps_.front().end);
      done_.push_back(std::move(steps_.front()));
      steps_.pop_front();
    }
  }

  cudaStream_t stream_;
  std::deque<Step> steps_;  ///< unfinished steps
  std::deque<Step> done_;   ///< the last finished step, and events for reuse
  double busy_ms_ = 0;
  double idle_ms_ = 0;
};
