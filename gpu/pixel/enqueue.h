// SPDX-License-Identifier: Apache-2.0
//
// How a kernel is loaded and enqueued. A kernel takes one struct, its arguments, whose
// `has_barrier` says whether it calls `__syncthreads()`: the tests' stand-in must know.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <type_traits>

namespace millrace::kernels {

/// Has the kernel loaded to the current device: to ask for its attributes does that.
template <typename Arguments>
cudaError_t load_kernel(void (*kernel)(Arguments)) {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel));
}

/// Enqueues the kernel on `stream` of the current device. Returns the launch's own status, whatever
/// error another call has left behind.
template <typename Arguments>
cudaError_t enqueue(void (*kernel)(Arguments), std::size_t blocks, unsigned threads,
                    Arguments arguments, cudaStream_t stream) {
  static_assert(std::is_same_v<decltype(Arguments::has_barrier), const bool>);
  void* parameters[] = {&arguments};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel),
                          dim3(static_cast<unsigned>(blocks)), dim3(threads), parameters, 0,
                          stream);
}

}  // namespace millrace::kernels
