// SPDX-License-Identifier: Apache-2.0
//
// The CUDA runtime's functions for devices, contexts, versions and errors, over the stand-in's
// machine, and those of the driver for contexts.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <string_view>

#include "stand_in/machine.h"

using millrace::testing::stand_in::call;
using millrace::testing::stand_in::call_outside_captures;
using millrace::testing::stand_in::contexts;
using millrace::testing::stand_in::current_device;
using millrace::testing::stand_in::enter;
using millrace::testing::stand_in::last_error;
using millrace::testing::stand_in::machine;

namespace {

/// Drivers know all runtimes of their major version.
constexpr int oldest_driver = CUDART_VERSION / 1000 * 1000;

cudaError_t use_device(int device) {
  std::lock_guard lock(machine().mutex);
  if (device < 0 || device >= machine().devices) return cudaErrorInvalidDevice;
  machine().devices_used.insert(device);
  return cudaSuccess;
}

// ---- the driver's; a context's handle is one more than its device

CUresult primary_retain(CUcontext* context, CUdevice device) {
  if (const cudaError_t error = enter("cuDevicePrimaryCtxRetain"))
    return static_cast<CUresult>(error);
  if (use_device(device) != cudaSuccess) return CUDA_ERROR_INVALID_DEVICE;
  *context = reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device) + 1);
  return CUDA_SUCCESS;
}
CUresult primary_release(CUdevice /*device*/) {
  return static_cast<CUresult>(enter("cuDevicePrimaryCtxRelease"));
}
CUresult push_current(CUcontext context) {
  if (const cudaError_t error = enter("cuCtxPushCurrent")) return static_cast<CUresult>(error);
  contexts().push_back(static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1);
  return CUDA_SUCCESS;
}
CUresult pop_current(CUcontext* context) {
  if (const cudaError_t error = enter("cuCtxPopCurrent")) return static_cast<CUresult>(error);
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(current_device()) + 1);
  contexts().pop_back();
  return CUDA_SUCCESS;
}

cudaError_t entry_point(const char* symbol, void** function,
                        cudaDriverEntryPointQueryResult* result) {
  const std::string_view name(symbol);
  *function = name == "cuDevicePrimaryCtxRetain"    ? reinterpret_cast<void*>(primary_retain)
              : name == "cuDevicePrimaryCtxRelease" ? reinterpret_cast<void*>(primary_release)
              : name == "cuCtxPushCurrent"          ? reinterpret_cast<void*>(push_current)
              : name == "cuCtxPopCurrent"           ? reinterpret_cast<void*>(pop_current)
                                                    : nullptr;
  *result = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&] {
    std::lock_guard lock(machine().mutex);
    *count = 0;
    if (machine().driver < oldest_driver) return cudaErrorInsufficientDriver;
    *count = machine().devices;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return call("cudaDriverGetVersion", [&] {
    std::lock_guard lock(machine().mutex);
    *version = machine().driver;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&] {
    *device = current_device();
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", [&] {
    if (const cudaError_t error = use_device(device)) return error;
    if (!contexts().empty()) contexts().pop_back();
    contexts().push_back(device);
    return cudaSuccess;
  });
}

cudaError_t cudaInitDevice(int device, unsigned /*device_flags*/, unsigned /*flags*/) {
  return call("cudaInitDevice", [&] { return use_device(device); });
}

#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                             unsigned /*version*/, unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* result) {
  return call("cudaGetDriverEntryPointByVersion",
              [&] { return entry_point(symbol, function, result); });
}
#else
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function,
                                    unsigned long long /*flags*/,
                                    cudaDriverEntryPointQueryResult* result) {
  return call("cudaGetDriverEntryPoint", [&] { return entry_point(symbol, function, result); });
}
#endif

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call("cudaDeviceGetAttribute", [&] {
    std::lock_guard lock(machine().mutex);
    if (device < 0 || device >= machine().devices) return cudaErrorInvalidDevice;
    if (attribute != cudaDevAttrMultiProcessorCount) return cudaErrorInvalidValue;
    *value = 2;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call("cudaDeviceGetStreamPriorityRange", [&] {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return call("cudaDeviceGetPCIBusId", [&] {
    std::snprintf(id, static_cast<std::size_t>(length), "FFFF:%02X:00.0",
                  static_cast<unsigned>(device) & 0xFFU);
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* /*function*/) {
  return call_outside_captures("cudaFuncGetAttributes", [&] {
    *attributes = {};
    return cudaSuccess;
  });
}

cudaError_t cudaPeekAtLastError() { return last_error(); }

cudaError_t cudaGetLastError() { return std::exchange(last_error(), cudaSuccess); }

const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "cudaSuccess" : "cudaErrorOfTheStandIn";
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess         ? "no error"
         : error == cudaErrorNoDevice ? "no CUDA-capable device is detected"
         : error == cudaErrorInsufficientDriver
             ? "CUDA driver version is insufficient for CUDA runtime version"
             : "a planned error";
}

}  // extern "C"
