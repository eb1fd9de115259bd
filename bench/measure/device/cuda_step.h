// SPDX-License-Identifier: Apache-2.0
//
// The one seam through which the bench reaches what only a real GPU has. On a GPU it is
// cuda_step.cu; tests put their own in its place.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

namespace millrace::cli {

/// Enqueues a kernel on `stream` of the current device that takes `nanoseconds` and next to nothing
/// else of the device: one block, no memory. Neither allocates nor waits. What is returned is the
/// launch's status.
cudaError_t launch_step(std::uint64_t nanoseconds, cudaStream_t stream);

/// Names of cuBLAS's library, to be tried in turn.
std::span<const char* const> cublas_libraries();

}  // namespace millrace::cli
