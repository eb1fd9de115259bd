// SPDX-License-Identifier: Apache-2.0
//
// The functions of CUDA's driver that gpu/ gets from the runtime. They do not change the runtime's
// last error or the current device.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "stand_in/machine.h"

using millrace::testing::stand_in::capture_mode;
using millrace::testing::stand_in::capture_status;
using millrace::testing::stand_in::contexts;
using millrace::testing::stand_in::current_device;
using millrace::testing::stand_in::enter;
using millrace::testing::stand_in::enter_outside_captures;
using millrace::testing::stand_in::enter_to_use;
using millrace::testing::stand_in::event_status;
using millrace::testing::stand_in::milliseconds_between;
using millrace::testing::stand_in::use_device;

namespace {

CUresult result(cudaError_t error) { return static_cast<CUresult>(error); }

/// A context's handle is its device's number plus one.
CUcontext context_of(int device) {
  return reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device) + 1);
}

CUresult primary_retain(CUcontext* context, CUdevice device) {
  if (const cudaError_t error = enter_to_use(device, "cuDevicePrimaryCtxRetain"))
    return result(error);
  if (use_device(device) != cudaSuccess) return CUDA_ERROR_INVALID_DEVICE;
  *context = context_of(device);
  return CUDA_SUCCESS;
}

CUresult primary_release(CUdevice /*device*/) { return result(enter("cuDevicePrimaryCtxRelease")); }

CUresult push_current(CUcontext context) {
  if (const cudaError_t error = enter("cuCtxPushCurrent")) return result(error);
  contexts().push_back(static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1);
  return CUDA_SUCCESS;
}

CUresult pop_current(CUcontext* context) {
  if (const cudaError_t error = enter("cuCtxPopCurrent")) return result(error);
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = context_of(current_device());
  contexts().pop_back();
  return CUDA_SUCCESS;
}

CUresult get_current(CUcontext* context) {
  if (const cudaError_t error = enter("cuCtxGetCurrent")) return result(error);
  *context = contexts().empty() ? nullptr : context_of(current_device());
  return CUDA_SUCCESS;
}

CUresult exchange_capture_mode(CUstreamCaptureMode* mode) {
  if (const cudaError_t error = enter("cuThreadExchangeStreamCaptureMode")) return result(error);
  const auto own = std::exchange(capture_mode(), static_cast<cudaStreamCaptureMode>(*mode));
  *mode = static_cast<CUstreamCaptureMode>(own);
  return CUDA_SUCCESS;
}

// Unlike the runtime's functions, these do not make a context: their callers have one.

CUresult event_query(CUevent event) {
  if (const cudaError_t error = enter_outside_captures("cuEventQuery")) return result(error);
  return contexts().empty() ? CUDA_ERROR_INVALID_CONTEXT : result(event_status(event));
}

CUresult event_elapsed(float* milliseconds, CUevent start, CUevent end) {
  if (const cudaError_t error = enter_outside_captures("cuEventElapsedTime")) return result(error);
  return contexts().empty() ? CUDA_ERROR_INVALID_CONTEXT
                            : result(milliseconds_between(start, end, milliseconds));
}

CUresult stream_is_capturing(CUstream stream, CUstreamCaptureStatus* status) {
  if (const cudaError_t error = enter("cuStreamIsCapturing")) return result(error);
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  cudaStreamCaptureStatus found = cudaStreamCaptureStatusNone;
  const cudaError_t error = capture_status(stream, &found);
  *status = static_cast<CUstreamCaptureStatus>(found);
  return result(error);
}

template <typename Result, typename... Parameters>
void* address(Result (*function)(Parameters...)) {
  return reinterpret_cast<void*>(function);
}

cudaError_t entry_point(std::string_view name, void** function,
                        cudaDriverEntryPointQueryResult* found) {
  const std::pair<std::string_view, void*> functions[] = {
      {"cuDevicePrimaryCtxRetain", address(primary_retain)},
      {"cuDevicePrimaryCtxRelease", address(primary_release)},
      {"cuCtxPushCurrent", address(push_current)},
      {"cuCtxPopCurrent", address(pop_current)},
      {"cuCtxGetCurrent", address(get_current)},
      {"cuThreadExchangeStreamCaptureMode", address(exchange_capture_mode)},
      {"cuEventQuery", address(event_query)},
      {"cuEventElapsedTime", address(event_elapsed)},
      {"cuStreamIsCapturing", address(stream_is_capturing)},
  };
  *function = nullptr;
  for (const auto& [known, at] : functions)
    if (name == known) *function = at;
  *found = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

}  // namespace

extern "C" {

#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                             unsigned /*version*/, unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* found) {
  return millrace::testing::stand_in::call("cudaGetDriverEntryPointByVersion",
                                           [&] { return entry_point(symbol, function, found); });
}
#else
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function,
                                    unsigned long long /*flags*/,
                                    cudaDriverEntryPointQueryResult* found) {
  return millrace::testing::stand_in::call("cudaGetDriverEntryPoint",
                                           [&] { return entry_point(symbol, function, found); });
}
#endif

}  // extern "C"
