// SPDX-License-Identifier: Apache-2.0
//
// The kernels of this device, and the lookup of the kernel for a `DeviceWork`.
//
// A new kernel changes neither `Stream` nor `Device`. It needs:
//   1. its arguments with `run_on_host()`, the reference, in loader/ (see millrace/device_work.h),
//   2. a header in this folder with the kernel and its launch and load functions,
//   3. a row in kernels.cu, the only CUDA source. nvcc compiles it for the library, and the host's
//      compiler for the stand-in of the tests.
#pragma once

#include <cuda_runtime_api.h>
#include <millrace/device_work.h>

#include <optional>

namespace millrace {

/// Status of a launch, and the name of the launch function.
struct KernelLaunch {
  const char* call;
  cudaError_t status;
};

/// Enqueues `work` on `stream` of the current device; nullopt if this device has no kernel for it.
/// Neither allocates nor waits.
std::optional<KernelLaunch> launch_kernel(const DeviceWork& work, cudaStream_t stream);

/// Loads all kernels to the current device. The first launch would otherwise load them, which may
/// allocate and wait. Fails if the build has no code for the device.
cudaError_t load_kernels();

}  // namespace millrace
