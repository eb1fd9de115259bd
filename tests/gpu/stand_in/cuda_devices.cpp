// SPDX-License-Identifier: Apache-2.0
//
// The CUDA runtime's functions for devices, contexts, versions and errors, over the stand-in's
// machine.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <utility>

#include "stand_in/machine.h"

using millrace::testing::stand_in::call;
using millrace::testing::stand_in::call_outside_captures;
using millrace::testing::stand_in::contexts;
using millrace::testing::stand_in::current_device;
using millrace::testing::stand_in::enter_to_use;
using millrace::testing::stand_in::last_error;
using millrace::testing::stand_in::machine;
using millrace::testing::stand_in::told;
using millrace::testing::stand_in::use_device;

namespace {

/// Drivers support all runtimes of their major version.
constexpr int oldest_driver = CUDART_VERSION / 1000 * 1000;

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
  cudaError_t error = enter_to_use(device, "cudaSetDevice");
  if (error == cudaSuccess) error = use_device(device);
  if (error != cudaSuccess) return told(error);
  if (!contexts().empty()) contexts().pop_back();
  contexts().push_back(device);
  return cudaSuccess;
}

cudaError_t cudaInitDevice(int device, unsigned /*device_flags*/, unsigned /*flags*/) {
  return call_outside_captures("cudaInitDevice", [&] { return use_device(device); });
}

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

cudaError_t cudaGetLastError() {
  std::lock_guard lock(machine().mutex);
  const bool stays = machine().broken != cudaSuccess && last_error() == machine().broken;
  return stays ? last_error() : std::exchange(last_error(), cudaSuccess);
}

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
