// SPDX-License-Identifier: Apache-2.0
//
// Rate at which the host converts a batch of 64 images of 224 x 224. It is measured for one thread
// with tables, and for a pipeline whose samples cost nothing. "of_plain" is the speedup over a
// conversion value by value in the same run.
#include <benchmark/benchmark.h>
#include <millrace/detail/plain_conversion.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "micro/empty_samples.h"

namespace millrace {
namespace {

constexpr std::size_t batch_size = 64;
constexpr std::size_t side = 224;

void convert_on_host(benchmark::State& state, DType dtype, ImageLayout layout) {
  std::vector<std::uint8_t> pixels(batch_size * side * side * 3);
  for (std::size_t place = 0; place < pixels.size(); ++place)
    pixels[place] = static_cast<std::uint8_t>(place * 0x9E3779B97F4A7C15 >> 56U);
  std::vector<std::uint8_t> flips(batch_size);
  for (std::size_t sample = 0; sample < batch_size; sample += 2) flips[sample] = 1;
  std::vector<float> made(pixels.size());
  std::vector<float> plain(pixels.size());
  ConversionWork work{.source = pixels.data(),
                      .destination = made.data(),
                      .flips = flips.data(),
                      .samples = batch_size,
                      .height = side,
                      .width = side,
                      .channels = 3,
                      .dtype = dtype,
                      .layout = layout,
                      .mean = Conversion::imagenet_mean,
                      .std = Conversion::imagenet_std};
  ConversionWork plain_work = work;
  plain_work.destination = plain.data();
  work.run_on_host();
  convert_plainly(plain_work);
  if (std::memcmp(made.data(), plain.data(), made.size() * sizeof(float)) != 0)
    throw std::runtime_error("the bits differ");

  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double> plain_time{0};
  std::chrono::duration<double> time{0};
  while (state.KeepRunning()) {
    const Clock::time_point begin = Clock::now();
    convert_plainly(plain_work);
    const Clock::time_point middle = Clock::now();
    work.run_on_host();
    const std::chrono::duration<double> one = Clock::now() - middle;
    plain_time += middle - begin;
    time += one;
    state.SetIterationTime(one.count());
  }
  state.counters["of_plain"] = plain_time / time;
}
BENCHMARK_CAPTURE(convert_on_host, uint8_nhwc, DType::uint8, ImageLayout::nhwc)->UseManualTime();
BENCHMARK_CAPTURE(convert_on_host, float16_nchw, DType::float16, ImageLayout::nchw)
    ->UseManualTime();
BENCHMARK_CAPTURE(convert_on_host, float32_nhwc, DType::float32, ImageLayout::nhwc)
    ->UseManualTime();
BENCHMARK_CAPTURE(convert_on_host, float32_nchw, DType::float32, ImageLayout::nchw)
    ->UseManualTime();

void pipeline_that_converts(benchmark::State& state) {
  const auto runtime = make_runtime({.workers = static_cast<unsigned>(state.range(0))});
  Pipeline pipeline(std::make_shared<OneByteDataset>(),
                    std::make_shared<EmptyTransform>(
                        SampleSpec({{"image", DType::uint8, {side, side, 3}, false}})),
                    std::make_shared<HostDevice>(),
                    {.batch_size = batch_size, .conversion = Conversion{}, .runtime = runtime});
  for (int batch = 0; batch < 10; ++batch) pipeline.next();
  while (state.KeepRunning()) benchmark::DoNotOptimize(pipeline.next().size());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch_size));
}
BENCHMARK(pipeline_that_converts)->Arg(1)->Arg(2)->UseRealTime()->MeasureProcessCPUTime();

}  // namespace
}  // namespace millrace
