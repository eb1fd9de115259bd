// SPDX-License-Identifier: Apache-2.0
//
// The kernels of this device, and how it finds the one for a `DeviceWork`.
//
// A further kernel changes neither `Stream` nor `Device`. It takes
//   1. its arguments with `run_on_host()`, the reference, in loader/ (see millrace/device_work.h),
//   2. a header here with the kernel, its launch and its load,
//   3. a row for it in kernels.cu, the one source that is compiled: by nvcc here, by the host's
//      compiler for the tests' stand-in.
#pragma once

#include <cuda_runtime_api.h>
#include <millrace/device_work.h>

#include <optional>

namespace millrace {

/// A launch's status, and the name of the function that launched.
struct KernelLaunch {
  const char* call;
  cudaError_t status;
};

/// Enqueues `work` on `stream` of the current device; nullopt if there is no kernel for it. Neither
/// allocates nor waits.
std::optional<KernelLaunch> launch_kernel(const DeviceWork& work, cudaStream_t stream);

/// Has all kernels loaded to the current device, so that the first launch does not: that may
/// allocate and wait. Fails if there is no code for the device.
cudaError_t load_kernels();

}  // namespace millrace
