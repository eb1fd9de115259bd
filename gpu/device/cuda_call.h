// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <millrace/detail/blocking_calls.h>
#include <millrace/error.h>

#include <memory>
#include <optional>
#include <string>
#include <type_traits>

namespace millrace {

/// Throws `Error` (`device`) that names the call, unless it succeeded.
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw Error(ErrorCode::device, std::string(call) + " failed: " + cudaGetErrorString(status) +
                                     " (" + cudaGetErrorName(status) + ")");
}

/// While it lives, the calling thread's calls leave other threads' captures of streams alone: a
/// capture in CUDA's usual mode would forbid every thread of the process to ask events or to
/// allocate, and would be lost by the attempt. Nothing of millrace depends on what is captured, so
/// it says so.
class OutsideCaptures {
 public:
  OutsideCaptures() noexcept {
    exchanged_ = cudaThreadExchangeStreamCaptureMode(&mode_) == cudaSuccess;
  }
  ~OutsideCaptures() {
    if (exchanged_) cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  OutsideCaptures(const OutsideCaptures&) = delete;
  OutsideCaptures& operator=(const OutsideCaptures&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  bool exchanged_ = false;
};

/// Makes a device the calling thread's current one, outside captures, and puts back what was. The
/// pipeline's own threads are bound to their device (`CudaDevice::bind_thread`), so nothing is
/// switched there.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ != device) {
      check(cudaSetDevice(device), "cudaSetDevice");
      changed_ = true;
    }
    outside_captures_.emplace();  // behind it, since this asks the current device
  }
  ~CurrentDevice() {
    outside_captures_.reset();
    if (changed_) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  std::optional<OutsideCaptures> outside_captures_;
  int before_ = 0;
  bool changed_ = false;
};

/// The one way to the runtime's functions that allocate, create, give back or wait: tells
/// `note_blocking_call`, then calls outside captures.
template <typename... Parameters, typename... Arguments>
cudaError_t blocking_call(const char* name, cudaError_t (*function)(Parameters...),
                          Arguments... arguments) {
  note_blocking_call(name);
  const OutsideCaptures outside_captures;
  return function(arguments...);
}

struct DestroyEvent {
  void operator()(cudaEvent_t event) const {
    blocking_call("cudaEventDestroy", cudaEventDestroy, event);
  }
};
using EventHandle = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;

/// An event of the current device; `flags` as of cudaEventCreateWithFlags.
inline EventHandle make_event_handle(unsigned flags) {
  constexpr const char* name = "cudaEventCreateWithFlags";
  cudaEvent_t event = nullptr;
  check(blocking_call(name, cudaEventCreateWithFlags, &event, flags), name);
  return EventHandle(event);
}

/// Whether the event has passed. Throws `Error` (`device`).
inline bool has_passed(cudaEvent_t event) {
  const OutsideCaptures outside_captures;
  const cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady) return false;
  check(status, "cudaEventQuery");
  return true;
}

}  // namespace millrace
