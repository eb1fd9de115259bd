// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <millrace/detail/blocking_calls.h>
#include <millrace/error.h>

#include <memory>
#include <string>
#include <type_traits>

#include "device/deferred_free.h"
#include "device/driver.h"

namespace millrace {

/// Returns the status of a call. If it is an error, clears the thread's last CUDA error, so that
/// the trainer does not find it there.
inline cudaError_t clear_last_error(cudaError_t status) {
  if (status != cudaSuccess && cudaPeekAtLastError() == status) cudaGetLastError();
  return status;
}

/// Throws `Error` (`device`) that names the call. If fork() is the cause, the text says so.
[[noreturn]] inline void throw_failed(cudaError_t status, const char* call) {
  const std::string cause = why_not_after_fork();
  throw Error(ErrorCode::device, std::string(call) + " failed: " + cudaGetErrorString(status) +
                                     " (" + cudaGetErrorName(status) + ")" +
                                     (cause.empty() ? "" : ": " + cause));
}

/// Throws `Error` (`device`) that names the call, unless the call succeeded.
inline void check(cudaError_t status, const char* call) {
  if (clear_last_error(status) != cudaSuccess) throw_failed(status, call);
}

/// While it lives, protects other threads' captures from the calling thread's calls. A capture in
/// CUDA's default mode forbids all threads of the process to query events or to allocate; an
/// attempt would invalidate the capture. millrace does not depend on captured work, so it uses the
/// relaxed mode.
class OutsideCaptures {
 public:
  OutsideCaptures() noexcept : exchanged_(exchange_capture_mode(mode_)) {}
  ~OutsideCaptures() {
    if (exchanged_) exchange_capture_mode(mode_);
  }
  OutsideCaptures(const OutsideCaptures&) = delete;
  OutsideCaptures& operator=(const OutsideCaptures&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  const bool exchanged_;
};

/// Makes a device the calling thread's current one. The destructor restores the previous state,
/// also if no device was current. The pipeline's own threads are bound to their device
/// (`CudaDevice::prepare_thread`), so no switch happens there.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) : device_(device), pushed_(!is_current(device)) {
    if (!pushed_) return;
    const OutsideCaptures outside_captures;  // pushing may make a context
    push_context(device);
  }
  ~CurrentDevice() {
    if (pushed_) pop_context(device_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  const int device_;
  const bool pushed_;
};

/// Calls a runtime function that allocates, creates, frees or waits: reports it to
/// `note_blocking_call`, then calls it outside captures. All such calls must use it.
template <typename... Parameters, typename... Arguments>
cudaError_t blocking_call(const char* name, cudaError_t (*function)(Parameters...),
                          Arguments... arguments) {
  note_blocking_call(name);
  const OutsideCaptures outside_captures;
  return function(arguments...);
}

struct EventDeleter {
  void operator()(cudaEvent_t /*event*/) const noexcept { EnqueueFree()(deferred); }
  DeferredFree* deferred = nullptr;
};
using EventHandle = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, EventDeleter>;

/// Makes an event of the current device; `flags` as for cudaEventCreateWithFlags.
inline EventHandle make_event_handle(unsigned flags) {
  constexpr const char* name = "cudaEventCreateWithFlags";
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  DeferredFreeHandle deferred(new DeferredFree(device, "cudaEventDestroy", [](void* event) {
    return cudaEventDestroy(static_cast<cudaEvent_t>(event));
  }));
  cudaEvent_t event = nullptr;
  check(blocking_call(name, cudaEventCreateWithFlags, &event, flags), name);
  deferred->object = event;
  return EventHandle(event, EventDeleter{deferred.release()});
}

}  // namespace millrace
