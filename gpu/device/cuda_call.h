// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <millrace/detail/blocking_calls.h>
#include <millrace/error.h>

#include <memory>
#include <string>
#include <type_traits>

#include "device/driver.h"
#include "device/loan.h"

namespace millrace {

/// A call's status. An error is not left for the trainer to find as its thread's last one.
inline cudaError_t taken_back(cudaError_t status) {
  if (status != cudaSuccess && cudaPeekAtLastError() == status) cudaGetLastError();
  return status;
}

/// Throws `Error` (`device`) that names the call.
[[noreturn]] inline void throw_failed(cudaError_t status, const char* call) {
  throw Error(ErrorCode::device, std::string(call) + " failed: " + cudaGetErrorString(status) +
                                     " (" + cudaGetErrorName(status) + ")");
}

/// Throws `Error` (`device`) that names the call, unless it succeeded.
inline void check(cudaError_t status, const char* call) {
  if (taken_back(status) != cudaSuccess) throw_failed(status, call);
}

/// While it lives, the calling thread's calls leave other threads' captures of streams alone: a
/// capture in CUDA's usual mode would forbid every thread of the process to ask events or to
/// allocate, and would be lost by the attempt. Nothing of millrace depends on what is captured, so
/// it says so.
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

/// Makes a device the calling thread's current one, and puts back what was, or that there was none.
/// The pipeline's own threads are bound to their device (`CudaDevice::bind_thread`), so nothing is
/// switched there.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) : device_(device), pushed_(!is_current(device)) {
    if (!pushed_) return;
    const OutsideCaptures outside_captures;  // to push may make a context
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

/// The one way to the runtime's functions that allocate, create, give back or wait: tells
/// `note_blocking_call`, then calls outside captures.
template <typename... Parameters, typename... Arguments>
cudaError_t blocking_call(const char* name, cudaError_t (*function)(Parameters...),
                          Arguments... arguments) {
  note_blocking_call(name);
  const OutsideCaptures outside_captures;
  return function(arguments...);
}

struct EndEvent {
  void operator()(cudaEvent_t /*event*/) const noexcept { EndLoan()(loan); }
  Loan* loan = nullptr;
};
using EventHandle = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, EndEvent>;

/// An event of the current device; `flags` as of cudaEventCreateWithFlags.
inline EventHandle make_event_handle(unsigned flags) {
  constexpr const char* name = "cudaEventCreateWithFlags";
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  LoanHandle loan(new Loan(device, "cudaEventDestroy", [](void* event) {
    return cudaEventDestroy(static_cast<cudaEvent_t>(event));
  }));
  cudaEvent_t event = nullptr;
  check(blocking_call(name, cudaEventCreateWithFlags, &event, flags), name);
  loan->what = event;
  return EventHandle(event, EndEvent{loan.release()});
}

}  // namespace millrace
