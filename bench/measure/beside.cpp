// SPDX-License-Identifier: Apache-2.0
#include "measure/beside.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>

#include "measure/synthetic_trainer.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// The same trainer, with every step's batch there already: for 2 s, or as many steps as were
/// measured.
std::optional<double> idle_by_synthetic(const BenchSettings& settings, const BenchResult& result) {
  constexpr std::chrono::seconds enough{2};
  constexpr int warmup = 3;
  if (!settings.step_work().any() || result.batch_ms.empty()) return std::nullopt;
  const auto stream = settings.device->make_trainer_stream(settings.step_work());
  SyntheticTrainer trainer(ready_batch(settings, *stream), *stream);
  for (int step = 0; step < warmup; ++step) trainer.train_one();
  const Clock::time_point begin = Clock::now();
  std::size_t steps = 0;
  do {
    trainer.train_one();
    ++steps;
  } while (steps < result.batch_ms.size() && Clock::now() - begin < enough);
  const double synthetic_ms = milliseconds(Clock::now() - begin) / static_cast<double>(steps);
  const double measured_ms = std::accumulate(result.batch_ms.begin(), result.batch_ms.end(), 0.0) /
                             static_cast<double>(result.batch_ms.size());
  trainer.finish();
  return 1 - synthetic_ms / measured_ms;
}

std::optional<double> plain_copy(const BenchSettings& settings, const BenchResult& result) {
  if (!result.copies || settings.runtime->topology().nodes.empty()) return std::nullopt;
  const Topology& topology = settings.runtime->topology();
  Device& device = *settings.device->device();
  const auto own = std::ranges::find_if(
      topology.nodes, [&](const NumaNode& node) { return node.number == device.numa_node(); });
  const NumaNode& node = own == topology.nodes.end() ? topology.nodes.front() : *own;
  const auto rate =
      plain_copy_rate(device, node, static_cast<std::size_t>(std::llround(result.copies->bytes)),
                      std::max<std::size_t>(2, settings.prefetch));
  if (!rate) return std::nullopt;
  return rate->bytes_per_second;
}

/// Of a new pipeline. None where the device tells no times.
std::optional<double> first_step_ms(const BenchSettings& settings, TrainerStream& steps,
                                    bool in_parts) {
  Pipeline pipeline = make_bench_pipeline(settings);
  Batch batch = in_parts ? pipeline.next_in_parts(steps.stream()) : pipeline.next(steps.stream());
  const std::chrono::duration<double> since_start(pipeline.report().first_batch_seconds);
  const Clock::time_point start =
      Clock::now() - std::chrono::duration_cast<Clock::duration>(since_start);
  std::optional<StepSpan> first;
  const auto take_first = [&] {
    const auto span = steps.finish_oldest();
    if (!first) first = span;
  };
  for (const Part& part : batch.parts()) {
    steps.step(batch, static_cast<double>(part.size()) / static_cast<double>(batch.size()));
    if (steps.queued() == TrainerStream::most_queued) take_first();
  }
  while (steps.queued() > 0) take_first();
  if (!first) return std::nullopt;
  return milliseconds(first->begin - start);
}

std::optional<FirstStep> first_step(const BenchSettings& settings) {
  // A trainer's own step takes whole batches.
  if (settings.micro_batches < 2 || settings.own_step) return std::nullopt;
  constexpr std::size_t times = 3;
  const auto steps = settings.device->make_trainer_stream(settings.step_work());
  std::array<double, times> parts{};
  std::array<double, times> whole{};
  for (std::size_t time = 0; time < times; ++time) {
    const auto in_parts = first_step_ms(settings, *steps, true);
    const auto at_once = first_step_ms(settings, *steps, false);
    if (!in_parts || !at_once) return std::nullopt;
    parts[time] = *in_parts;
    whole[time] = *at_once;
  }
  std::ranges::sort(parts);
  std::ranges::sort(whole);
  return FirstStep{parts[times / 2], whole[times / 2]};
}

}  // namespace

BesideResult measure_beside(const BenchSettings& settings, const BenchResult& result) {
  BenchSettings plain = settings;
  plain.trace = nullptr;
  return {.idle_by_synthetic = idle_by_synthetic(plain, result),
          .plain_copy_bytes_per_second = plain_copy(plain, result),
          .first_step = first_step(plain)};
}

}  // namespace millrace::cli
