// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "command/device/cuda_step.h"

namespace millrace::cli {
namespace {

/// Reads the device's clock, which is independent of its frequency and ticks at least once a
/// microsecond.
__device__ std::uint64_t device_nanoseconds() {
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin(std::uint64_t nanoseconds) {
  /// Final interval without sleep, so that the end is precise.
  constexpr std::uint64_t awake = 10000;
  const std::uint64_t begin = device_nanoseconds();
  for (std::uint64_t passed = 0; passed < nanoseconds; passed = device_nanoseconds() - begin)
    if (passed + awake < nanoseconds) __nanosleep(1000);
}

constexpr std::array<const char*, 2> libraries = {"libcublas.so.13", "libcublas.so.12"};

}  // namespace

cudaError_t launch_step(std::uint64_t nanoseconds, cudaStream_t stream) {
  void* parameters[] = {&nanoseconds};
  // Returns this launch's status, even if another call has left an error.
  return cudaLaunchKernel(reinterpret_cast<const void*>(spin), dim3(1), dim3(1), parameters, 0,
                          stream);
}

std::span<const char* const> cublas_libraries() { return libraries; }

}  // namespace millrace::cli
