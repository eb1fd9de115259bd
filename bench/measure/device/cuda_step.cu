// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "measure/device/cuda_step.h"

namespace millrace::cli {
namespace {

/// Goes with the device's frequency-independent clock, which ticks at least once a microsecond.
__device__ std::uint64_t device_nanoseconds() {
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin(std::uint64_t nanoseconds) {
  /// Not asleep for the last stretch, so that the end is met.
  constexpr std::uint64_t awake = 10000;
  const std::uint64_t begin = device_nanoseconds();
  for (std::uint64_t passed = 0; passed < nanoseconds; passed = device_nanoseconds() - begin)
    if (passed + awake < nanoseconds) __nanosleep(1000);
}

constexpr std::array<const char*, 2> libraries = {"libcublas.so.13", "libcublas.so.12"};

}  // namespace

cudaError_t launch_step(std::uint64_t nanoseconds, cudaStream_t stream) {
  void* parameters[] = {&nanoseconds};
  // It returns its own status, whatever error another call has left behind.
  return cudaLaunchKernel(reinterpret_cast<const void*>(spin), dim3(1), dim3(1), parameters, 0,
                          stream);
}

std::span<const char* const> cublas_libraries() { return libraries; }

}  // namespace millrace::cli
