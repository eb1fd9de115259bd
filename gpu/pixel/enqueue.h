// SPDX-License-Identifier: Apache-2.0
//
// Loading and enqueuing of kernels. A kernel takes one struct with its arguments.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace millrace::kernels {

/// Loads the kernel to the current device, by requesting its attributes.
template <typename Arguments>
cudaError_t load_kernel(void (*kernel)(Arguments)) {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel));
}

/// Enqueues the kernel on `stream` of the current device. Returns the status of this launch, not an
/// earlier error.
template <typename Arguments>
cudaError_t enqueue(void (*kernel)(Arguments), std::size_t blocks, unsigned threads,
                    Arguments arguments, cudaStream_t stream) {
  void* parameters[] = {&arguments};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel),
                          dim3(static_cast<unsigned>(blocks)), dim3(threads), parameters, 0,
                          stream);
}

}  // namespace millrace::kernels
