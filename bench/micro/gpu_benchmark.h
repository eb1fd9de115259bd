// SPDX-License-Identifier: Apache-2.0
//
// Shared by the benchmarks on a GPU. Each source registers its own after the command line is
// parsed.
#pragma once

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>
#include <millrace/cuda_device.h>
#include <millrace/error.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace millrace::micro {

/// Amount of work. The benchmarks set it themselves: they report the time of a single launch, which
/// the library would repeat for a long time.
struct GpuScale {
  std::size_t max_samples = SIZE_MAX;
  int timings = 30;
  /// Launches that are timed together, so that they do not wait for the host.
  int launches_per_timing = 20;
  int warm_ups = 5;
  /// Bytes to copy, more than any cache holds.
  std::size_t bandwidth_bytes = std::size_t{1} << 30U;
  std::size_t pinned_bytes = std::size_t{256} << 20U;
  int pinned_times = 5;
  std::chrono::milliseconds blocking_kernel{200};
  int launch_rounds = 3;
};

/// For `--small`: a quick run whose figures are meaningless.
inline constexpr GpuScale small_scale{.max_samples = 2,
                                      .timings = 2,
                                      .launches_per_timing = 1,
                                      .warm_ups = 1,
                                      .bandwidth_bytes = std::size_t{1} << 20U,
                                      .pinned_bytes = std::size_t{1} << 20U,
                                      .pinned_times = 2,
                                      .blocking_kernel = std::chrono::milliseconds(20),
                                      .launch_rounds = 1};

/// Scale of this run; `main` sets it before benchmarks are registered.
inline GpuScale& gpu_scale() {
  static GpuScale scale;
  return scale;
}

/// Whether all results were right; `main` checks it at the end.
inline bool& all_right() {
  static bool right = true;
  return right;
}

void register_conversions();
void register_crops();
void register_launches();
void register_mixes();
void register_pinned_allocations();

struct Shape4 {
  std::size_t samples, height, width, channels;
  std::size_t sample_elements() const { return height * width * channels; }
  std::size_t elements() const { return samples * sample_elements(); }
  std::string name() const {
    return std::to_string(samples) + "x" + std::to_string(height) + "x" + std::to_string(width) +
           "x" + std::to_string(channels);
  }
};

/// Batches with similar numbers of pixels, in sizes that are common in training.
inline std::vector<Shape4> image_batches() {
  std::vector<Shape4> batches = {
      {256, 224, 224, 3}, {144, 299, 299, 3}, {64, 384, 384, 3}, {48, 518, 518, 3}};
  for (Shape4& batch : batches) batch.samples = std::min(batch.samples, gpu_scale().max_samples);
  return batches;
}

/// Pseudo-random bytes, the same each time.
inline std::vector<std::uint8_t> noise_bytes(std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  std::uint32_t random = 1;
  for (std::uint8_t& byte : bytes)
    byte = static_cast<std::uint8_t>((random = random * 1664525 + 1013904223) >> 24U);
  return bytes;
}

inline void check(cudaError_t status) {
  if (status != cudaSuccess) throw Error(ErrorCode::device, cudaGetErrorString(status));
}

/// Measures the seconds that the stream needs for one of many successive launches.
class Timer {
 public:
  explicit Timer(CudaStream& stream) : stream_(stream), begin_(make_event()), end_(make_event()) {}

  double seconds(const std::function<void()>& launch) {
    const int launches = gpu_scale().launches_per_timing;
    check(cudaEventRecord(begin_.get(), stream_.handle()));
    for (int n = 0; n < launches; ++n) launch();
    check(cudaEventRecord(end_.get(), stream_.handle()));
    stream_.synchronize();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
    return milliseconds / 1e3 / launches;
  }

  /// Runs some launches without measuring.
  void warm_up(const std::function<void()>& launch) {
    for (int n = 0; n < gpu_scale().warm_ups; ++n) seconds(launch);
  }

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  };
  using Handle = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy>;
  static Handle make_event() {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDefault));
    return Handle(event);
  }

  CudaStream& stream_;
  Handle begin_;
  Handle end_;
};

/// Median rate of device copies that read and write `bytes` in all.
inline double copy_bytes_per_second(CudaDevice& device, CudaStream& stream, std::size_t bytes) {
  const Memory from = device.allocate_device(bytes / 2);
  const Memory to = device.allocate_device(bytes / 2);
  Timer timer(stream);
  const auto copy = [&] { stream.copy_on_device(to.data(), from.data(), bytes / 2); };
  timer.warm_up(copy);
  std::array<double, 15> seconds{};
  for (double& one : seconds) one = timer.seconds(copy);
  std::ranges::nth_element(seconds, seconds.begin() + seconds.size() / 2);
  return static_cast<double>(bytes) / seconds[seconds.size() / 2];
}

/// Bandwidth of the device's memory, measured once with large copies.
inline double device_bandwidth() {
  static const double bandwidth = [] {
    CudaDevice device;
    CudaStream stream(0);
    return copy_bytes_per_second(device, stream, gpu_scale().bandwidth_bytes);
  }();
  return bandwidth;
}

/// Times `launch`, which reads and writes `bytes`. Counters: of_copy, the ratio of its rate to that
/// of a copy of as many bytes; of_bandwidth, the ratio to copies that exceed every cache.
inline void time_beside_copies(benchmark::State& state, CudaDevice& device, CudaStream& stream,
                               std::size_t bytes, const std::function<void()>& launch) {
  const double copy_rate = copy_bytes_per_second(device, stream, bytes);
  Timer timer(stream);
  timer.warm_up(launch);
  double seconds = 0;
  for ([[maybe_unused]] auto _ : state) {
    const double one = timer.seconds(launch);
    state.SetIterationTime(one);
    seconds += one;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  const double rate =
      static_cast<double>(bytes) * static_cast<double>(state.iterations()) / seconds;
  state.counters["of_copy"] = rate / copy_rate;
  state.counters["of_bandwidth"] = rate / device_bandwidth();
}

/// Registers a benchmark with times from the device.
template <typename Run, typename... Arguments>
void register_timed(const std::string& name, Run run, Arguments... arguments) {
  benchmark::RegisterBenchmark(name.c_str(), run, arguments...)
      ->UseManualTime()
      ->Iterations(gpu_scale().timings)
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace millrace::micro
