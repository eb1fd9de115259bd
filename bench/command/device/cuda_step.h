// SPDX-License-Identifier: Apache-2.0
//
// The only interface of the bench to features of a real GPU. cuda_step.cu implements it; tests link
// their own version.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

namespace millrace::cli {

/// Enqueues a kernel on `stream` of the current device that runs for `nanoseconds` with minimal use
/// of the device: one block, no memory. Neither allocates nor waits. Returns the launch's status.
cudaError_t launch_step(std::uint64_t nanoseconds, cudaStream_t stream);

/// Names of cuBLAS's library, in the order to try.
std::span<const char* const> cublas_libraries();

}  // namespace millrace::cli
