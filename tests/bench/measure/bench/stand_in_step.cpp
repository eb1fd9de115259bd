// SPDX-License-Identifier: Apache-2.0
//
// The bench's kernels on the stand-in for CUDA: steps sleep, and cuBLAS is not installed.
#include <array>
#include <chrono>
#include <thread>

#include "command/device/cuda_step.h"
#include "stand_in/machine.h"

namespace millrace::cli {
namespace {

namespace stand_in = testing::stand_in;

constexpr std::array libraries = {"libcublas-of-the-stand-in.so",
                                  "libcublas-of-the-stand-in.so.12"};

}  // namespace

cudaError_t launch_step(std::uint64_t nanoseconds, cudaStream_t stream) {
  if (const cudaError_t error = stand_in::enter("launch_step")) return error;
  return stand_in::give(stream, [nanoseconds] {
    std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
  });
}

std::span<const char* const> cublas_libraries() { return libraries; }

}  // namespace millrace::cli
