// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/bench_run.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "measure/bench/synthetic_trainer.h"
#include "measure/device/copy_rate.h"
#include "measure/machine/process.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Hashes batches in the order in which the stream reaches them.
class Digest {
 public:
  Digest() { XXH3_64bits_reset(state_.get()); }

  void add(const Batch& batch, TrainerStream& stream) {
    const auto indices = std::make_shared<std::vector<std::uint64_t>>(batch.indices().begin(),
                                                                      batch.indices().end());
    if (names_.empty()) names_ = digested(batch.field_names());
    stream.read(batch, names_, [this, indices](std::span<const Tensor> fields) {
      add_bytes(indices->data(), indices->size() * sizeof(std::uint64_t));
      for (const Tensor& field : fields) add_bytes(field.data, field.bytes());
    });
  }

  std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  void add_bytes(const void* data, std::size_t bytes) {
    XXH3_64bits_update(state_.get(), data, bytes);
  }
  /// Returns the labels and images if both exist; else all fields of the transform.
  static std::vector<std::string> digested(std::vector<std::string> names) {
    const auto has = [&](const char* name) { return std::ranges::count(names, name) > 0; };
    if (has("label") && has("image")) return {"label", "image"};
    std::erase(names, "index");
    std::erase(names, "valid");
    return names;
  }

  std::vector<std::string> names_;
  std::unique_ptr<XXH3_state_t, Free> state_{XXH3_createState()};
};

std::int64_t growth(std::size_t before, std::size_t after) {
  return static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before);
}

ConsumerTime consumer_time(std::vector<double> values_us) {
  if (values_us.empty()) return {};
  std::ranges::sort(values_us);
  const auto percentile = [&](double share) {
    return values_us[static_cast<std::size_t>(
        std::llround(share * static_cast<double>(values_us.size() - 1)))];
  };
  const double sum = std::accumulate(values_us.begin(), values_us.end(), 0.0);
  return {sum / static_cast<double>(values_us.size()), percentile(0.5), percentile(0.99)};
}

/// Samples per second of each whole epoch.
std::vector<double> epoch_rates(std::span<const double> batch_ms, std::uint64_t batches,
                                std::uint64_t samples) {
  std::vector<double> rates;
  for (; batch_ms.size() >= batches; batch_ms = batch_ms.subspan(batches))
    rates.push_back(1e3 * static_cast<double>(samples) /
                    std::accumulate(batch_ms.begin(),
                                    batch_ms.begin() + static_cast<std::ptrdiff_t>(batches), 0.0));
  return rates;
}

/// Adds the device's figures. Called after the last step.
void look_at_device(const TrainerStream& stream, const Trace* trace, BenchResult& result) {
  const StepStatistics steps = stream.statistics();
  result.device_idle = idle_share(steps);
  if (steps.steps > 0)
    result.device_step_ms = milliseconds(steps.busy) / static_cast<double>(steps.steps);
  if (trace == nullptr) return;
  result.copies = copy_rate(result.report, spans_of(*trace, "upload", "upload").size());
  if (steps.steps > 0)
    result.copy_hidden =
        hidden_share(spans_of(*trace, "copies", "copy"), spans_of(*trace, "device steps", "step"));
}

}  // namespace

std::vector<std::string> bench_lanes() { return {"upload", "copies", "device steps"}; }

Pipeline make_bench_pipeline(const BenchSettings& settings, std::shared_ptr<Device> device) {
  PipelineOptions options = settings.pipeline;
  options.epochs = 0;
  options.last_batch =
      settings.dataset->size() >= options.batch_size ? LastBatch::drop : LastBatch::pad;
  options.debug.trace = settings.trace;
  if (device == nullptr) device = settings.device->device();
  return Pipeline(settings.dataset, settings.transform, std::move(device), options);
}

Batch ready_batch(const BenchSettings& settings, TrainerStream& stream) {
  if (!settings.user_step) return {};
  BenchSettings plain = settings;
  plain.trace = nullptr;
  Pipeline pipeline = make_bench_pipeline(plain);
  return stream.next(pipeline);
}

BenchResult run_bench(const BenchSettings& settings) {
  std::optional<Digest> digest;
  if (settings.digest) digest.emplace();
  const auto stream = settings.device->make_trainer_stream(settings.step_work());
  SyntheticTrainer::Look look;
  if (digest) look = [&](const Batch& batch) { digest->add(batch, *stream); };
  Pipeline pipeline = make_bench_pipeline(settings);
  SyntheticTrainer trainer(&pipeline, *stream, settings.trace.get());
  for (std::uint64_t batch = 1; batch < settings.warmup; ++batch) trainer.train_one(look);
  // Reads these figures before the last warm-up batch, because the loader gets ahead meanwhile.
  const ResidentMemory memory(settings.dataset->facts().files);
  const std::optional<std::size_t> own_before = own_memory();
  const std::optional<std::size_t> device_before = settings.device->memory_in_use();
  if (settings.warmup > 0) trainer.train_one(look);

  pipeline.restart_report();
  if (settings.trace) settings.trace->clear();
  trainer.restart();
  const ProcessorTimes before = processor_times();
  const Clock::time_point begin = Clock::now();
  BenchResult result;
  const std::uint64_t batches =
      settings.epochs > 0 ? settings.epochs * pipeline.batches_per_epoch() : settings.batches;
  for (Clock::time_point last = begin;
       batches > 0 ? result.batch_ms.size() < batches : last - begin < settings.duration;) {
    trainer.train_one(look);
    const Clock::time_point now = Clock::now();
    result.batch_ms.push_back(milliseconds(now - last));
    last = now;
  }
  const ProcessorTimes after = processor_times();

  result.report = pipeline.report();
  if (const auto own_after = own_memory(); own_before && own_after)
    result.rss_growth = growth(*own_before, *own_after);
  result.consumer = consumer_time(trainer.consumer_us());
  trainer.finish();
  // The trace is finished after `trainer.finish()`, because the last step may begin only during
  // that call if its copy ends late.
  if (settings.trace) settings.trace->finish();
  if (device_before)
    result.device_memory_growth = growth(*device_before, *settings.device->memory_in_use());
  look_at_device(*stream, settings.trace.get(), result);
  if (settings.epochs > 0)
    result.epoch_rates = epoch_rates(result.batch_ms, pipeline.batches_per_epoch(),
                                     result.report.samples / settings.epochs);
  if (digest) result.digest = digest->value();
  result.verdict = judge(result.report, result.device_idle);
  result.peak_rss_beyond_map = memory.peak();
  result.cpu_seconds = after.process_seconds - before.process_seconds;
  result.steal = steal_between(before, after);
  result.disturbed = taken_by_others(before, after);
  return result;
}

std::chrono::nanoseconds measure_batch_time(const BenchSettings& settings) {
  constexpr std::chrono::seconds enough{3};
  constexpr std::uint64_t fewest = 20;
  BenchSettings plain = settings;
  plain.trace = nullptr;
  plain.pipeline.index_bytes = 0;  // the next run must begin without stored hints and samples
  plain.pipeline.cache_bytes = 0;
  const auto stream = plain.device->make_trainer_stream({});
  Pipeline pipeline = make_bench_pipeline(plain);
  SyntheticTrainer trainer(&pipeline, *stream);
  for (std::uint64_t batch = 0; batch < 2 * settings.pipeline.slots.prefetch + 4; ++batch)
    trainer.train_one();
  const Clock::time_point begin = Clock::now();
  std::uint64_t batches = 0;
  for (; batches < fewest || Clock::now() - begin < enough; ++batches) trainer.train_one();
  return (Clock::now() - begin) / batches;
}

}  // namespace millrace::cli
