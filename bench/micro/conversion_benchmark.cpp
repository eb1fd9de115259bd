// SPDX-License-Identifier: Apache-2.0
//
// How fast images are converted on a GPU, beside a copy on the device that reads and writes as many
// bytes: of_copy is the ratio of their rates, from the same run. Before a conversion is timed, some
// of its samples are compared with `ConversionWork::run_on_host`.
#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>
#include <millrace/conversion_work.h>
#include <millrace/cuda_device.h>
#include <millrace/error.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace millrace;

/// Of each benchmark: its time is one launch's, so the library would repeat it for long.
constexpr int timings = 30;
bool all_right = true;

/// What is timed at once, so that launches do not wait for the host.
constexpr int launches_per_timing = 20;
constexpr int warm_ups = 5;
/// Samples compared at the batch's beginning, and at its end.
constexpr std::size_t compared_samples = 2;

struct Shape4 {
  std::size_t samples, height, width, channels;
  std::size_t sample_elements() const { return height * width * channels; }
  std::size_t elements() const { return samples * sample_elements(); }
  std::string name() const {
    return std::to_string(samples) + "x" + std::to_string(height) + "x" + std::to_string(width) +
           "x" + std::to_string(channels);
  }
};

enum class Flips { none, half, all };

void check(cudaError_t status) {
  if (status != cudaSuccess) throw Error(ErrorCode::device, cudaGetErrorString(status));
}

/// Seconds that the stream needs for one of many `launch`es in a row.
class Timer {
 public:
  explicit Timer(CudaStream& stream) : stream_(stream) {
    check(cudaEventCreate(&begin_));
    check(cudaEventCreate(&end_));
  }
  ~Timer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  double seconds(const std::function<void()>& launch) {
    check(cudaEventRecord(begin_, stream_.handle()));
    for (int n = 0; n < launches_per_timing; ++n) launch();
    check(cudaEventRecord(end_, stream_.handle()));
    check(cudaEventSynchronize(end_));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return milliseconds / 1e3 / launches_per_timing;
  }

 private:
  CudaStream& stream_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

/// The median rate of copies on the device that read and write `bytes` in all.
double copy_bytes_per_second(CudaDevice& device, CudaStream& stream, std::size_t bytes) {
  const Memory from = device.allocate_device(bytes / 2);
  const Memory to = device.allocate_device(bytes / 2);
  Timer timer(stream);
  const auto copy = [&] { stream.copy_on_device(to.data(), from.data(), bytes / 2); };
  for (int n = 0; n < warm_ups; ++n) timer.seconds(copy);
  std::array<double, 15> seconds{};
  for (double& one : seconds) one = timer.seconds(copy);
  std::ranges::nth_element(seconds, seconds.begin() + seconds.size() / 2);
  return static_cast<double>(bytes) / seconds[seconds.size() / 2];
}

void time_copies(benchmark::State& state, std::size_t bytes) {
  CudaDevice device;
  CudaStream stream(0);
  const Memory from = device.allocate_device(bytes / 2);
  const Memory to = device.allocate_device(bytes / 2);
  Timer timer(stream);
  const auto copy = [&] { stream.copy_on_device(to.data(), from.data(), bytes / 2); };
  for (int n = 0; n < warm_ups; ++n) timer.seconds(copy);
  for ([[maybe_unused]] auto _ : state) state.SetIterationTime(timer.seconds(copy));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

/// Whether the samples from `first` on are the host's.
bool are_the_hosts(const ConversionWork& work, std::size_t first,
                   const std::vector<std::uint8_t>& source, const std::vector<std::uint8_t>& flips,
                   CudaStream& stream) {
  const std::size_t elements = work.height * work.width * work.channels;
  ConversionWork some = work;
  some.samples = std::min(compared_samples, work.samples);
  some.source = source.data() + first * elements;
  some.flips = work.flips == nullptr ? nullptr : flips.data() + first;
  std::vector<std::uint32_t> expected(some.samples * elements);
  some.destination = expected.data();
  some.run_on_host();
  const std::size_t bytes = some.samples * elements * size_of(work.dtype);
  std::vector<std::uint8_t> converted(bytes);
  const auto* from =
      static_cast<const std::uint8_t*>(work.destination) + first * elements * size_of(work.dtype);
  check(cudaMemcpyAsync(converted.data(), from, bytes, cudaMemcpyDeviceToHost, stream.handle()));
  stream.synchronize();
  return std::equal(converted.begin(), converted.end(),
                    reinterpret_cast<const std::uint8_t*>(expected.data()));
}

void time_conversions(benchmark::State& state, const Shape4& shape, DType dtype, ImageLayout layout,
                      Flips flips) {
  CudaDevice device;
  CudaStream stream(0);
  std::vector<std::uint8_t> pixels(shape.elements());
  std::uint32_t random = 1;
  for (std::uint8_t& pixel : pixels)
    pixel = static_cast<std::uint8_t>((random = random * 1664525 + 1013904223) >> 24U);
  std::vector<std::uint8_t> flip(shape.samples);
  for (std::size_t n = 0; n < flip.size(); ++n) flip[n] = flips == Flips::all || n % 2 == 1 ? 1 : 0;
  const Memory source = device.allocate_device(pixels.size());
  const Memory flips_there = device.allocate_device(flip.size());
  const Memory destination = device.allocate_device(shape.elements() * size_of(dtype));
  stream.copy(source.data(), pixels.data(), pixels.size());
  stream.copy(flips_there.data(), flip.data(), flip.size());
  ConversionWork work{.source = reinterpret_cast<const std::uint8_t*>(source.data()),
                      .destination = destination.data(),
                      .flips = flips == Flips::none
                                   ? nullptr
                                   : reinterpret_cast<const std::uint8_t*>(flips_there.data()),
                      .samples = shape.samples,
                      .height = shape.height,
                      .width = shape.width,
                      .channels = shape.channels,
                      .dtype = dtype,
                      .layout = layout};
  work.mean = dtype == DType::uint8 ? work.mean : Conversion::imagenet_mean;
  work.std = dtype == DType::uint8 ? std::array<float, Conversion::max_channels>{1, 1, 1, 1}
                                   : Conversion::imagenet_std;
  const auto convert = [&] { stream.launch(work); };
  // Not what another benchmark left there.
  check(cudaMemsetAsync(destination.data(), 0xA5, destination.bytes(), stream.handle()));
  convert();
  stream.synchronize();
  for (const std::size_t first :
       {std::size_t{0}, shape.samples - std::min(shape.samples, compared_samples)})
    if (!are_the_hosts(work, first, pixels, flip, stream)) {
      all_right = false;
      return state.SkipWithError("the result is not the host's");
    }

  const std::size_t bytes = shape.elements() * (1 + size_of(dtype));
  const double copy_rate = copy_bytes_per_second(device, stream, bytes);
  Timer timer(stream);
  for (int n = 0; n < warm_ups; ++n) timer.seconds(convert);
  double seconds = 0;
  for ([[maybe_unused]] auto _ : state) {
    const double one = timer.seconds(convert);
    state.SetIterationTime(one);
    seconds += one;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  state.counters["of_copy"] =
      static_cast<double>(bytes) * static_cast<double>(state.iterations()) / seconds / copy_rate;
}

void register_benchmarks() {
  for (const Shape4& shape : {Shape4{256, 224, 224, 3}, Shape4{64, 384, 384, 3}}) {
    for (const DType dtype : {DType::uint8, DType::float16, DType::bfloat16, DType::float32}) {
      const std::size_t bytes = shape.elements() * (1 + size_of(dtype));
      benchmark::RegisterBenchmark(("Copy/" + shape.name() + "/as_for_" + to_string(dtype)).c_str(),
                                   time_copies, bytes)
          ->UseManualTime()
          ->Iterations(timings)
          ->Unit(benchmark::kMicrosecond);
      for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw})
        for (const auto& [flips, name] :
             {std::pair(Flips::none, "no_flips"), std::pair(Flips::half, "half_flipped"),
              std::pair(Flips::all, "all_flipped")})
          benchmark::RegisterBenchmark(("Convert/" + shape.name() + "/" + to_string(dtype) +
                                        (layout == ImageLayout::nhwc ? "/nhwc/" : "/nchw/") + name)
                                           .c_str(),
                                       time_conversions, shape, dtype, layout, flips)
              ->UseManualTime()
              ->Iterations(timings)
              ->Unit(benchmark::kMicrosecond);
    }
  }
}

constexpr int no_device = 77;

}  // namespace

int main(int argc, char** argv) try {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  try {
    const CudaDevice device;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return no_device;
  }
  register_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
  return all_right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "millrace_gpu_benchmarks: %s\n", error.what());
  return 1;
}
