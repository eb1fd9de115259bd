// SPDX-License-Identifier: Apache-2.0
//
// Cost of a `measure::ReportFeed` on the trainer's thread, for each batch and for each report.
// Argument: the number of workers. All slots are full, so the workers are idle.
#include <benchmark/benchmark.h>
#include <millrace/host_device.h>
#include <millrace/measure.h>

#include <cstdint>
#include <memory>

#include "micro/empty_samples.h"

namespace millrace {
namespace {

void feed(benchmark::State& state, std::uint64_t every) {
  Pipeline pipeline(std::make_shared<OneByteDataset>(), std::make_shared<EmptyTransform>(),
                    std::make_shared<HostDevice>(),
                    {.batch_size = 256,
                     .runtime = make_runtime({.workers = static_cast<unsigned>(state.range(0))})});
  for (int batch = 0; batch < 100; ++batch) pipeline.next();
  std::uint64_t told = 0;
  measure::ReportFeed reports(pipeline, every, [&](const Report&) { ++told; });
  while (state.KeepRunning()) reports.count();
  benchmark::DoNotOptimize(told);
}

void feed_counts(benchmark::State& state) { feed(state, UINT64_MAX); }
BENCHMARK(feed_counts)->Arg(2);

void feed_tells(benchmark::State& state) { feed(state, 1); }
BENCHMARK(feed_tells)->Arg(1)->Arg(2)->Arg(16)->Arg(64);

}  // namespace
}  // namespace millrace
