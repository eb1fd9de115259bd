// SPDX-License-Identifier: Apache-2.0
//
// Time from opening a dataset to the first batch: at the start of a run, and resumed in the middle
// of its epoch 1,000.
#include <benchmark/benchmark.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>

#include <memory>

#include "micro/empty_samples.h"

namespace millrace {
namespace {

void first_batch(benchmark::State& state, Order order, bool resumed) {
  const auto dataset = std::make_shared<OneByteDataset>();
  const auto transform = std::make_shared<EmptyTransform>();
  const auto device = std::make_shared<HostDevice>();
  PipelineOptions options{
      .batch_size = 256, .order = std::move(order), .runtime = make_runtime({.workers = 1})};
  const std::uint64_t batches_per_epoch = (dataset->size() - 1) / options.batch_size + 1;
  if (resumed)
    options.resume.from =
        State{.position = 1000 * dataset->size() + batches_per_epoch / 2 * options.batch_size};
  while (state.KeepRunning()) {
    Pipeline pipeline(dataset, transform, device, options);
    benchmark::DoNotOptimize(pipeline.next().size());
  }
}

BENCHMARK_CAPTURE(first_batch, shuffled_cold, Order::shuffled(), false)->UseRealTime();
BENCHMARK_CAPTURE(first_batch, shuffled_resumed, Order::shuffled(), true)->UseRealTime();
BENCHMARK_CAPTURE(first_batch, blocks_cold, Order::blocks(), false)->UseRealTime();
BENCHMARK_CAPTURE(first_batch, blocks_resumed, Order::blocks(), true)->UseRealTime();

}  // namespace
}  // namespace millrace
