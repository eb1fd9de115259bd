// SPDX-License-Identifier: Apache-2.0
#include "device/driver.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cudaTypedefs.h>

#include <fstream>

#include "device/cuda_call.h"

namespace millrace {
namespace {

/// Throws `Error` (`device`) unless the call succeeded. The driver's error numbers equal the
/// runtime's.
void check_driver(CUresult status, const char* call) {
  if (status != CUDA_SUCCESS) throw_failed(static_cast<cudaError_t>(status), call);
}

template <typename Function>
Function entry_point(const char* name, unsigned version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found),
        "cudaGetDriverEntryPointByVersion");
#else
  static_cast<void>(version);
  check(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found),
        "cudaGetDriverEntryPoint");
#endif
  if (found != cudaDriverEntryPointSuccess)
    throw Error(ErrorCode::device, std::string("the driver has no ") + name);
  return reinterpret_cast<Function>(function);
}

/// Functions of the driver, looked up at run time. A program that links the driver would not start
/// on machines without one.
struct Driver {
  PFN_cuDevicePrimaryCtxRetain_v7000 retain =
      entry_point<PFN_cuDevicePrimaryCtxRetain_v7000>("cuDevicePrimaryCtxRetain", 7000);
  PFN_cuDevicePrimaryCtxRelease_v11000 release =
      entry_point<PFN_cuDevicePrimaryCtxRelease_v11000>("cuDevicePrimaryCtxRelease", 11000);
  PFN_cuCtxPushCurrent_v4000 push =
      entry_point<PFN_cuCtxPushCurrent_v4000>("cuCtxPushCurrent", 4000);
  PFN_cuCtxPopCurrent_v4000 pop = entry_point<PFN_cuCtxPopCurrent_v4000>("cuCtxPopCurrent", 4000);
  PFN_cuCtxGetCurrent_v4000 current =
      entry_point<PFN_cuCtxGetCurrent_v4000>("cuCtxGetCurrent", 4000);
  PFN_cuThreadExchangeStreamCaptureMode_v10010 exchange_capture_mode =
      entry_point<PFN_cuThreadExchangeStreamCaptureMode_v10010>("cuThreadExchangeStreamCaptureMode",
                                                                10010);
  PFN_cuEventQuery_v2000 query = entry_point<PFN_cuEventQuery_v2000>("cuEventQuery", 2000);
  PFN_cuEventElapsedTime_v2000 elapsed =
      entry_point<PFN_cuEventElapsedTime_v2000>("cuEventElapsedTime", 2000);
  PFN_cuStreamIsCapturing_v10000 is_capturing =
      entry_point<PFN_cuStreamIsCapturing_v10000>("cuStreamIsCapturing", 10000);
};

const Driver& driver() {
  static const Driver functions;
  return functions;
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
}

}  // namespace

bool is_current(int device) {
  int current = 0;
  check(cudaGetDevice(&current), "cudaGetDevice");
  if (current != device) return false;
  // For a thread without a context, the runtime reports device 0, and its later calls make device 0
  // current permanently. The driver's calls fail instead, so the context is checked too.
  CUcontext context = nullptr;
  check_driver(driver().current(&context), "cuCtxGetCurrent");
  return context != nullptr;
}

void push_context(int device) {
  check(cudaInitDevice(device, 0, 0), "cudaInitDevice");
  CUcontext context = nullptr;
  check_driver(driver().retain(&context, device), "cuDevicePrimaryCtxRetain");
  const CUresult pushed = driver().push(context);
  if (pushed != CUDA_SUCCESS) driver().release(device);
  check_driver(pushed, "cuCtxPushCurrent");
}

void pop_context(int device) noexcept {
  CUcontext context = nullptr;
  driver().pop(&context);
  driver().release(device);
}

bool exchange_capture_mode(cudaStreamCaptureMode& mode) noexcept try {
  auto exchanged = static_cast<CUstreamCaptureMode>(mode);
  if (driver().exchange_capture_mode(&exchanged) != CUDA_SUCCESS) return false;
  mode = static_cast<cudaStreamCaptureMode>(exchanged);
  return true;
} catch (...) {
  return false;  // the driver is missing
}

bool has_passed(cudaEvent_t event) {
  const OutsideCaptures outside_captures;
  const CUresult status = driver().query(event);
  if (status == CUDA_SUCCESS) return true;
  if (status == CUDA_ERROR_NOT_READY) return false;
  clear_last_error(blocking_call("cudaEventSynchronize", cudaEventSynchronize, event));
  throw_failed(static_cast<cudaError_t>(status), "cuEventQuery");
}

std::optional<float> milliseconds_between(cudaEvent_t from, cudaEvent_t to) {
  const OutsideCaptures outside_captures;
  float milliseconds = 0;
  const CUresult status = driver().elapsed(&milliseconds, from, to);
  // The driver reports an event that was not recorded as an invalid handle.
  if (status == CUDA_ERROR_NOT_READY || status == CUDA_ERROR_INVALID_HANDLE) return std::nullopt;
  check_driver(status, "cuEventElapsedTime");
  return milliseconds;
}

bool is_capturing(cudaStream_t stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult asked = driver().is_capturing(stream, &status);
  // The legacy default stream also rejects work while a stream that it would wait for is captured.
  if (asked == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return true;
  check_driver(asked, "cuStreamIsCapturing");
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

std::string why_no_device(cudaError_t status, const char* version_file) {
  int knows = 0;
  if (status != cudaErrorInsufficientDriver || cudaDriverGetVersion(&knows) != cudaSuccess)
    return std::string("no CUDA device: ") + cudaGetErrorString(status);
  if (knows == 0) return "no CUDA device: there is no driver";
  std::string number;
  std::ifstream(version_file) >> number;
  // A driver supports all runtimes of its major version.
  return (number.empty() ? "the driver" : "driver " + number) + " knows CUDA " +
         version_text(knows) + ", this build needs " + version_text(CUDART_VERSION / 1000 * 1000);
}

}  // namespace millrace
