// SPDX-License-Identifier: Apache-2.0
//
// The parts of CUDA's language that the kernels of gpu/ use, for a compiler that does not know it,
// so that the kernels' own source runs on the host. Threads of a block run one after the other.
// Kernels have one barrier, and read shared memory after it: a block runs twice, and the second
// time it reads what the first time wrote. Include it in one source file, before the kernels.
#pragma once

#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#undef __global__
#undef __device__
#undef __shared__
#undef __launch_bounds__
#undef __grid_constant__
#define __global__
#define __device__
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __grid_constant__

namespace {

thread_local uint3 threadIdx{};
thread_local uint3 blockIdx{};
thread_local dim3 blockDim{};
thread_local dim3 gridDim{};

void __syncthreads() {}

/// A GPU ends the program if an address is not aligned to the size of the access; so does this.
template <typename T>
T __ldg(const T* from) {
  if (reinterpret_cast<std::uintptr_t>(from) % sizeof(T) != 0) std::abort();
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Each byte of the result is the byte of the eight that its selector names.
std::uint32_t __byte_perm(std::uint32_t low, std::uint32_t high, std::uint32_t selectors) {
  const std::uint64_t bytes = std::uint64_t{high} << 32U | low;
  std::uint32_t result = 0;
  for (unsigned n = 0; n < 4; ++n) {
    const unsigned selector = selectors >> (n * 4) & 7U;
    result |= static_cast<std::uint32_t>(bytes >> (selector * 8) & 0xFFU) << (n * 8);
  }
  return result;
}

/// The lower word of both, shifted right by `bits`.
std::uint32_t __funnelshift_r(std::uint32_t low, std::uint32_t high, std::uint32_t bits) {
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32U | low) >> (bits & 31U));
}

}  // namespace
