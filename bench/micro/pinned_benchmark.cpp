// SPDX-License-Identifier: Apache-2.0
//
// Time to allocate pinned memory: as pipelines do for their slots, and directly by the CUDA runtime
// (cudaMallocHost). "ms_per_gib" is a median. All memory is kept until the end, so none is reused.
#include "micro/gpu_benchmark.h"

namespace millrace::micro {
namespace {

Memory allocate_by_cuda(std::size_t bytes) {
  void* data = nullptr;
  check(cudaMallocHost(&data, bytes));
  return Memory(static_cast<std::byte*>(data), bytes,
                [](std::byte* memory) { cudaFreeHost(memory); });
}

void time_pinning(benchmark::State& state, bool by_cuda) {
  using Clock = std::chrono::steady_clock;
  constexpr double gib = 1 << 30;
  const std::size_t bytes = gpu_scale().pinned_bytes;
  CudaDevice device;
  device.prepare_thread();
  std::vector<Memory> kept;
  std::vector<double> all;
  for ([[maybe_unused]] auto _ : state) {
    const Clock::time_point begin = Clock::now();
    kept.push_back(by_cuda ? allocate_by_cuda(bytes) : device.allocate_host(bytes, {}));
    all.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    state.SetIterationTime(all.back());
  }
  std::ranges::sort(all);
  state.counters["ms_per_gib"] = 1e3 * all[all.size() / 2] * gib / static_cast<double>(bytes);
}

}  // namespace

void register_pinned_allocations() {
  for (const bool by_cuda : {false, true})
    benchmark::RegisterBenchmark(
        (std::string("PinnedAllocation/") + (by_cuda ? "cudaMallocHost/" : "device/") +
         std::to_string(gpu_scale().pinned_bytes >> 20U) + "MiB")
            .c_str(),
        time_pinning, by_cuda)
        ->UseManualTime()
        ->Iterations(gpu_scale().pinned_times)
        ->Unit(benchmark::kMillisecond);
}

}  // namespace millrace::micro
