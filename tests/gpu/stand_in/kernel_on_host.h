// SPDX-License-Identifier: Apache-2.0
//
// The parts of CUDA's language that the kernels of gpu/ use, for a compiler that does not know it,
// so that the kernels' own source runs on the host. The threads of a block are fibres of one thread
// (block_threads.h), so `thread_local` memory is the block's shared memory. Include it in one
// source file, before the kernels.
#pragma once

#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "stand_in/block_threads.h"

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

using millrace::testing::stand_in::BlockThreads;

[[maybe_unused]] void __syncthreads() { BlockThreads::wait_for_block(); }
[[maybe_unused]] void __syncwarp(std::uint32_t mask = UINT32_MAX) {
  BlockThreads::wait_for_warp(mask);
}
[[maybe_unused]] std::uint32_t __ballot_sync(std::uint32_t mask, int predicate) {
  return BlockThreads::vote(mask, predicate != 0);
}

[[maybe_unused]] int __popc(std::uint32_t bits) { return std::popcount(bits); }
[[maybe_unused]] int __popcll(std::uint64_t bits) { return std::popcount(bits); }

/// The value of thread `lane` of the calling thread's group of `width` threads in the warp.
template <typename T>
T __shfl_sync(std::uint32_t mask, T value, int lane, int width = 32) {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  const unsigned own = BlockThreads::lane();
  const auto group = static_cast<unsigned>(width);
  const unsigned from = own - own % group + static_cast<unsigned>(lane) % group;
  bits = BlockThreads::exchange(mask, bits, from);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
/// The value of the thread `delta` before the calling one; its own at the start of the group.
template <typename T>
T __shfl_up_sync(std::uint32_t mask, T value, unsigned delta, int width = 32) {
  const unsigned place = BlockThreads::lane() % static_cast<unsigned>(width);
  return __shfl_sync(mask, value, static_cast<int>(place < delta ? place : place - delta), width);
}
template <typename T>
T __shfl_xor_sync(std::uint32_t mask, T value, int lanes) {
  return __shfl_sync(mask, value, static_cast<int>(BlockThreads::lane()) ^ lanes);
}

template <typename T>
T atomicAdd(T* at, T value) {
  return std::atomic_ref(*at).fetch_add(value, std::memory_order_relaxed);
}
template <typename T>
T atomicOr(T* at, T value) {
  return std::atomic_ref(*at).fetch_or(value, std::memory_order_relaxed);
}

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
