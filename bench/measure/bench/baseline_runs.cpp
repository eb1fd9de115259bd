// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/baseline_runs.h"

#include <millrace/host_device.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <stop_token>
#include <thread>
#include <utility>

#include "measure/bench/synthetic_trainer.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Times of steps without a loader.
struct StepsAlone {
  double step_ms = 0;
  std::optional<double> idle;
};

/// Runs the same trainer with a batch that is already made. It runs as many steps as were measured,
/// but for at most 10 s.
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

/// Repeats a call on its own thread.
class Repeater {
 public:
  explicit Repeater(std::function<void()> call)
      : thread_([this, call = std::move(call)](const std::stop_token& stop) {
          try {
            while (!stop.stop_requested()) call();
          } catch (...) {
            error_ = std::current_exception();
          }
        }) {}

  Repeater(const Repeater&) = delete;
  Repeater& operator=(const Repeater&) = delete;

  /// Ends the thread after the current call. Rethrows an exception of a call.
  void finish() {
    thread_.request_stop();
    thread_.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
  std::jthread thread_;
};

/// Returns whether samples need a conversion, because the device does some of the work on them.
bool needs_conversion(const Transform& transform) {
  const auto has_device_work = [](const FieldSpec& field) {
    return !field.flipped_image.empty() || !field.erased_image.empty() ||
           !field.device_stages.empty();
  };
  return transform.batch_transform() != nullptr ||
         std::ranges::any_of(transform.spec().fields(), has_device_work);
}

/// Makes a pipeline of the same samples on the host device, to keep the workers busy. Omits the
/// conversion if the samples do not need it.
Pipeline host_pipeline(BenchSettings settings) {
  if (!needs_conversion(*settings.transform)) settings.pipeline.conversion.reset();
  settings.pipeline.index_bytes = 0;
  settings.pipeline.cache_bytes = 0;
  return make_bench_pipeline(settings, std::make_shared<HostDevice>());
}

/// Adds the rates of plain copies.
void measure_plain_copies(const BenchSettings& settings, const BenchResult& result,
                          BaselineResult& baselines) {
  if (!result.copies || settings.pipeline.runtime->topology().nodes.empty()) return;
  const Topology& topology = settings.pipeline.runtime->topology();
  Device& device = *settings.device->device();
  const auto own = std::ranges::find_if(
      topology.nodes, [&](const NumaNode& node) { return node.number == device.numa_node(); });
  const NumaNode& node = own == topology.nodes.end() ? topology.nodes.front() : *own;
  const auto bytes = static_cast<std::size_t>(std::llround(result.copies->bytes));
  const std::size_t all =
      plain_copy_memory(bytes, std::max<std::size_t>(2, settings.pipeline.slots.prefetch));
  const Memory pinned = device.allocate_host(all, node);
  const Memory by_driver = settings.device->allocate_by_driver(all);
  const auto rate = [&](const Memory& source) { return plain_copy_rates(device, source, bytes); };
  baselines.plain_copies.idle = rate(pinned);
  if (by_driver.data() == nullptr) return;
  baselines.driver_copies.idle = rate(by_driver);
  // A trainer's own step must stay on the trainer's thread.
  if (settings.step_work().any() && !settings.user_step) {
    const auto stream = settings.device->make_trainer_stream(settings.step_work());
    SyntheticTrainer trainer(Batch(), *stream);
    trainer.train_one();
    Repeater steps([&] { trainer.train_one(); });
    baselines.plain_copies.under_steps = rate(pinned);
    baselines.driver_copies.under_steps = rate(by_driver);
    steps.finish();
    trainer.finish();
  }
  Pipeline pipeline = host_pipeline(settings);
  pipeline.next();
  Repeater workers([&] { pipeline.next(); });
  baselines.plain_copies.busy = rate(pinned);
  baselines.driver_copies.busy = rate(by_driver);
  workers.finish();
}

/// Starts a new pipeline and measures the time to the start of its first step. Returns nullopt if
/// the device cannot measure times.
std::optional<double> first_step_ms(const BenchSettings& settings, TrainerStream& steps,
                                    bool in_micro_batches) {
  Pipeline pipeline = make_bench_pipeline(settings);
  Batch batch = in_micro_batches ? pipeline.next_in_micro_batches(steps.stream())
                                 : pipeline.next(steps.stream());
  const std::chrono::duration<double> since_start(pipeline.report().first_batch_seconds);
  const Clock::time_point start =
      Clock::now() - std::chrono::duration_cast<Clock::duration>(since_start);
  std::optional<StepSpan> first;
  const auto take_first = [&] {
    const auto span = steps.finish_oldest();
    if (!first) first = span;
  };
  for (const MicroBatch& part : batch.micro_batches()) {
    steps.step(batch, static_cast<double>(part.size()) / static_cast<double>(batch.size()));
    if (steps.queued() == TrainerStream::max_queued) take_first();
  }
  while (steps.queued() > 0) take_first();
  if (!first) return std::nullopt;
  return milliseconds(first->begin - start);
}

std::optional<FirstStep> first_step(const BenchSettings& settings) {
  // A trainer's own step takes only whole batches.
  if (settings.pipeline.slots.micro_batches < 2 || settings.user_step) return std::nullopt;
  constexpr std::size_t times = 3;
  const auto steps = settings.device->make_trainer_stream(settings.step_work());
  std::array<double, times> parts{};
  std::array<double, times> whole{};
  for (std::size_t time = 0; time < times; ++time) {
    const auto in_micro_batches = first_step_ms(settings, *steps, true);
    const auto at_once = first_step_ms(settings, *steps, false);
    if (!in_micro_batches || !at_once) return std::nullopt;
    parts[time] = *in_micro_batches;
    whole[time] = *at_once;
  }
  std::ranges::sort(parts);
  std::ranges::sort(whole);
  return FirstStep{parts[times / 2], whole[times / 2]};
}

}  // namespace

BaselineResult measure_baselines(const BenchSettings& settings, const BenchResult& result) {
  BenchSettings plain = settings;
  plain.trace = nullptr;
  BaselineResult baselines;
  if (const auto alone = steps_alone(plain, result)) {
    const double measured_ms =
        std::accumulate(result.batch_ms.begin(), result.batch_ms.end(), 0.0) /
        static_cast<double>(result.batch_ms.size());
    baselines.idle_by_synthetic = 1 - alone->step_ms / measured_ms;
    baselines.idle_floor = alone->idle;
  }
  measure_plain_copies(plain, result, baselines);
  baselines.first_step = first_step(plain);
  return baselines;
}

}  // namespace millrace::cli
