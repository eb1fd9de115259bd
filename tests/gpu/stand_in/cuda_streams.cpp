// SPDX-License-Identifier: Apache-2.0
//
// The CUDA runtime's functions for streams and events, over the stand-in's machine.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>

#include "stand_in/machine.h"

using millrace::testing::stand_in::Behind;
using millrace::testing::stand_in::call;
using millrace::testing::stand_in::call_outside_captures;
using millrace::testing::stand_in::Capture;
using millrace::testing::stand_in::current_device;
using millrace::testing::stand_in::event_status;
using millrace::testing::stand_in::give_locked;
using millrace::testing::stand_in::machine;
using millrace::testing::stand_in::make_queue;
using millrace::testing::stand_in::milliseconds_between;
using millrace::testing::stand_in::Point;
using millrace::testing::stand_in::stream_of;

namespace {

cudaError_t create_stream(cudaStream_t* stream, unsigned flags, int priority) {
  std::lock_guard lock(machine().mutex);
  *stream = new CUstream_st{.device = current_device(),
                            .blocking = (flags & cudaStreamNonBlocking) == 0,
                            .priority = priority,
                            .queue = make_queue(current_device())};
  machine().streams.insert(*stream);
  return cudaSuccess;
}

/// Lets a stream wait for an event that was recorded in a capture: it joins the capture, or gets a
/// further dependency.
cudaError_t wait_in_capture(cudaStream_t stream, const std::shared_ptr<Capture>& capture,
                            const Behind& behind) {
  if (stream->capture != nullptr && stream->capture != capture) {
    stream->capture->invalid = true;
    capture->invalid = true;
    return cudaErrorStreamCaptureMerge;
  }
  if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  stream->capture = capture;
  for (const auto& [other, count] : behind) {
    std::size_t& own = capture->streams[stream][other];
    own = std::max(own, count);
  }
  return cudaSuccess;
}

}  // namespace

namespace millrace::testing::stand_in {

cudaError_t event_status(cudaEvent_t event) {
  std::lock_guard lock(machine().mutex);
  if (!machine().events.contains(event)) return cudaErrorInvalidResourceHandle;
  if (!event->capture.expired()) return cudaErrorCapturedEvent;
  return event->point == nullptr || event->point->passed() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t milliseconds_between(cudaEvent_t start, cudaEvent_t end, float* milliseconds) {
  std::lock_guard lock(machine().mutex);
  if (!machine().events.contains(start) || !machine().events.contains(end))
    return cudaErrorInvalidResourceHandle;
  if (!start->capture.expired() || !end->capture.expired()) return cudaErrorCapturedEvent;
  if (start->device != end->device || !start->timed || !end->timed || start->point == nullptr ||
      end->point == nullptr)
    return cudaErrorInvalidResourceHandle;
  const auto begun = start->point->passed();
  const auto ended = end->point->passed();
  if (!begun || !ended) return cudaErrorNotReady;
  const std::chrono::duration<double, std::milli> elapsed = *ended - *begun;
  *milliseconds = static_cast<float>(elapsed.count() * machine().clock_factor);
  return cudaSuccess;
}

}  // namespace millrace::testing::stand_in

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call("cudaStreamCreateWithFlags", [&] { return create_stream(stream, flags, 0); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return call("cudaStreamCreateWithPriority",
              [&] { return create_stream(stream, flags, priority); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", [&] {
    std::lock_guard lock(machine().mutex);
    if (machine().streams.erase(stream) == 0) return cudaErrorInvalidResourceHandle;
    if (stream->capture != nullptr) {
      stream->capture->invalid = true;
      stream->capture->streams.erase(stream);
    }
    stream->queue->close();
    delete stream;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call_outside_captures("cudaStreamSynchronize", [&] {
    const auto end = std::make_shared<Point>();
    {
      std::lock_guard lock(machine().mutex);
      const cudaStream_t stream = stream_of(handle);
      if (stream != nullptr && stream->capture != nullptr) {
        stream->capture->invalid = true;
        return cudaErrorStreamCaptureUnsupported;
      }
      if (const cudaError_t error = give_locked(handle, [end] { end->pass(); })) return error;
    }
    end->wait();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned /*flags*/) {
  return call("cudaStreamWaitEvent", [&] {
    std::lock_guard lock(machine().mutex);
    const cudaStream_t stream = stream_of(handle);
    if (stream == nullptr || !machine().events.contains(event))
      return cudaErrorInvalidResourceHandle;
    if (const auto captured_in = event->capture.lock())
      return wait_in_capture(stream, captured_in, event->behind);
    // The point of the latest record before this call, as in CUDA.
    const auto point = event->point;
    if (point == nullptr) return cudaSuccess;
    if (stream->capture != nullptr) {
      stream->capture->invalid = true;
      return cudaErrorStreamCaptureIsolation;
    }
    return give_locked(handle, [point] { point->wait(); });
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&] {
    *event = new CUevent_st{.device = current_device(),
                            .timed = (flags & cudaEventDisableTiming) == 0,
                            .point = nullptr};
    std::lock_guard lock(machine().mutex);
    machine().events.insert(*event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call("cudaEventDestroy", [&] {
    std::lock_guard lock(machine().mutex);
    if (machine().events.erase(event) == 0) return cudaErrorInvalidResourceHandle;
    delete event;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  return call("cudaEventRecord", [&] {
    std::lock_guard lock(machine().mutex);
    const cudaStream_t stream = stream_of(handle);
    if (stream == nullptr || !machine().events.contains(event))
      return cudaErrorInvalidResourceHandle;
    if (stream->device != event->device) return cudaErrorInvalidResourceHandle;
    event->capture = stream->capture;
    event->point = nullptr;
    if (stream->capture != nullptr) {
      event->behind = stream->capture->streams[stream];
      return stream->capture->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
    }
    const auto point = std::make_shared<Point>();
    const cudaError_t error = give_locked(handle, [point] { point->pass(); });
    if (error == cudaSuccess) event->point = point;
    return error;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call_outside_captures("cudaEventQuery", [&] { return event_status(event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call_outside_captures("cudaEventSynchronize", [&] {
    std::shared_ptr<Point> point;
    {
      std::lock_guard lock(machine().mutex);
      if (!machine().events.contains(event)) return cudaErrorInvalidResourceHandle;
      if (!event->capture.expired()) return cudaErrorCapturedEvent;
      point = event->point;
    }
    if (point != nullptr) point->wait();
    return cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call_outside_captures("cudaEventElapsedTime",
                               [&] { return milliseconds_between(start, end, milliseconds); });
}

}  // extern "C"
