// SPDX-License-Identifier: Apache-2.0
#include "measure/beside.h"

#include <millrace/host_device.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <numeric>
#include <stop_token>
#include <thread>
#include <utility>

#include "measure/synthetic_trainer.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// What the steps took without a loader.
struct StepsAlone {
  double step_ms = 0;
  std::optional<double> idle;
};

/// The same trainer, with every step's batch there already: as many steps as were measured, but for
/// no longer than 10 s.
std::optional<StepsAlone> steps_alone(const BenchSettings& settings, const BenchResult& result) {
  constexpr std::chrono::seconds enough{10};
  constexpr int warmup = 3;
  if (!settings.step_work().any() || result.batch_ms.empty()) return std::nullopt;
  const auto stream = settings.device->make_trainer_stream(settings.step_work());
  SyntheticTrainer trainer(ready_batch(settings, *stream), *stream);
  for (int step = 0; step < warmup; ++step) trainer.train_one();
  trainer.restart();
  const Clock::time_point begin = Clock::now();
  std::size_t steps = 0;
  do {
    trainer.train_one();
    ++steps;
  } while (steps < result.batch_ms.size() && Clock::now() - begin < enough);
  const double step_ms = milliseconds(Clock::now() - begin) / static_cast<double>(steps);
  trainer.finish();
  return StepsAlone{step_ms, idle_share(stream->statistics())};
}

/// Workers that make batches on the host, as fast as they can, while this lives: what they are
/// busy with in a run, but for copies. Nothing is noted or kept of what they read.
class BusyWorkers {
 public:
  explicit BusyWorkers(BenchSettings settings) {
    settings.conversion.reset();
    settings.index_bytes = 0;
    settings.cache_bytes = 0;
    pipeline_ =
        std::make_unique<Pipeline>(make_bench_pipeline(settings, std::make_shared<HostDevice>()));
    pipeline_->next();
    thread_ = std::jthread([this](const std::stop_token& stop) { take_batches(stop); });
  }

  /// Ends it. Throws what ended it before.
  void finish() {
    thread_.request_stop();
    thread_.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void take_batches(const std::stop_token& stop) {
    try {
      while (!stop.stop_requested()) pipeline_->next();
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  std::unique_ptr<Pipeline> pipeline_;
  std::exception_ptr error_;
  std::jthread thread_;
};

/// Steps one after the other on a stream of their own, while this lives.
class BusySteps {
 public:
  explicit BusySteps(const BenchSettings& settings)
      : stream_(settings.device->make_trainer_stream(settings.step_work())),
        trainer_(ready_batch(settings, *stream_), *stream_) {
    trainer_.train_one();
    thread_ = std::jthread([this](const std::stop_token& stop) { take_steps(stop); });
  }

  /// Ends them. Throws what ended them before.
  void finish() {
    thread_.request_stop();
    thread_.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void take_steps(const std::stop_token& stop) {
    try {
      while (!stop.stop_requested()) trainer_.train_one();
      trainer_.finish();
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  std::unique_ptr<TrainerStream> stream_;
  SyntheticTrainer trainer_;
  std::exception_ptr error_;
  std::jthread thread_;
};

/// Adds the rates of plain copies.
void measure_plain_copies(const BenchSettings& settings, const BenchResult& result,
                          BesideResult& beside) {
  if (!result.copies || settings.runtime->topology().nodes.empty()) return;
  const Topology& topology = settings.runtime->topology();
  Device& device = *settings.device->device();
  const auto own = std::ranges::find_if(
      topology.nodes, [&](const NumaNode& node) { return node.number == device.numa_node(); });
  const NumaNode& node = own == topology.nodes.end() ? topology.nodes.front() : *own;
  const auto bytes = static_cast<std::size_t>(std::llround(result.copies->bytes));
  const std::size_t all = plain_copy_memory(bytes, std::max<std::size_t>(2, settings.prefetch));
  const Memory pinned = device.allocate_host(all, node);
  const Memory by_driver = settings.device->allocate_by_driver(all);
  const auto rate = [&](const Memory& source) { return plain_copy_rates(device, source, bytes); };
  beside.plain_copies.idle = rate(pinned);
  if (by_driver.data() == nullptr) return;
  beside.driver_copies.idle = rate(by_driver);
  if (settings.step_work().any()) {
    BusySteps steps(settings);
    beside.plain_copies.under_steps = rate(pinned);
    beside.driver_copies.under_steps = rate(by_driver);
    steps.finish();
  }
  BusyWorkers workers(settings);
  beside.plain_copies.busy = rate(pinned);
  beside.driver_copies.busy = rate(by_driver);
  workers.finish();
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
  BesideResult beside;
  if (const auto alone = steps_alone(plain, result)) {
    const double measured_ms =
        std::accumulate(result.batch_ms.begin(), result.batch_ms.end(), 0.0) /
        static_cast<double>(result.batch_ms.size());
    beside.idle_by_synthetic = 1 - alone->step_ms / measured_ms;
    beside.idle_floor = alone->idle;
  }
  measure_plain_copies(plain, result, beside);
  beside.first_step = first_step(plain);
  return beside;
}

}  // namespace millrace::cli
