// SPDX-License-Identifier: Apache-2.0
#include "bench_run.h"

#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <xxhash.h>

#include <vector>

#include "process.h"
#include "synthetic_trainer.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Hashes batches in the order the stream reaches them.
class Digest {
 public:
  Digest() { XXH3_64bits_reset(state_.get()); }

  void add(const Batch& batch, HostStream& stream) {
    const auto indices = std::make_shared<std::vector<std::uint64_t>>(batch.indices().begin(), batch.indices().end());
    stream.launch([this, indices, labels = batch.labels(), images = batch.images()] {
      add_bytes(indices->data(), indices->size() * sizeof(std::uint64_t));
      add_bytes(labels.data, labels.bytes());
      add_bytes(images.data, images.bytes());
    });
  }

  std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  void add_bytes(const void* data, std::size_t bytes) { XXH3_64bits_update(state_.get(), data, bytes); }

  std::unique_ptr<XXH3_state_t, Free> state_{XXH3_createState()};
};

}  // namespace

Pipeline make_bench_pipeline(const BenchSettings& settings) {
  return make_bench_pipeline(settings, image_transform(settings.recipe));
}

Pipeline make_bench_pipeline(const BenchSettings& settings, std::shared_ptr<const Transform> transform) {
  PipelineOptions options;
  options.batch_size = settings.batch_size;
  options.seed = settings.seed;
  options.last_batch = settings.dataset->size() >= settings.batch_size ? LastBatch::drop : LastBatch::pad;
  options.prefetch = settings.prefetch;
  options.micro_batches = settings.micro_batches;
  options.runtime = settings.runtime;
  options.trace = settings.trace;
  return Pipeline(
      settings.dataset, std::move(transform),
      std::make_shared<HostDevice>(HostDeviceOptions{.copies = true, .copy_bytes_per_second = settings.copy_bytes_per_second}),
      options);
}

BenchResult run_bench(const BenchSettings& settings) {
  std::optional<Digest> digest;
  if (settings.digest) digest.emplace();
  HostStream stream;
  SyntheticTrainer::Look look;
  if (digest) look = [&](const Batch& batch) { digest->add(batch, stream); };
  Pipeline pipeline = make_bench_pipeline(settings);
  SyntheticTrainer trainer(&pipeline, stream, settings.step, settings.trace.get());
  for (std::uint64_t batch = 0; batch < settings.warmup; ++batch) trainer.train_one(look);

  const ResidentMemory memory(settings.dataset->facts().files);
  if (settings.trace) settings.trace->clear();
  pipeline.restart_report();
  stream.reset_steps();
  const ProcessorTimes before = processor_times();
  const Clock::time_point begin = Clock::now();
  BenchResult result;
  for (Clock::time_point last = begin;
       settings.batches > 0 ? result.batch_ms.size() < settings.batches : last - begin < settings.duration;) {
    trainer.train_one(look);
    const Clock::time_point now = Clock::now();
    result.batch_ms.push_back(std::chrono::duration<double, std::milli>(now - last).count());
    last = now;
  }
  const ProcessorTimes after = processor_times();

  result.report = pipeline.report();
  if (settings.trace) settings.trace->finish();
  trainer.finish();
  const StepStatistics steps = stream.steps();
  if (steps.steps > 0)
    result.device_idle = static_cast<double>(steps.idle.count()) / static_cast<double>((steps.idle + steps.busy).count());
  if (digest) result.digest = digest->value();
  result.verdict = judge(result.report, result.device_idle);
  result.peak_rss_beyond_map = memory.peak();
  result.cpu_seconds = after.process_seconds - before.process_seconds;
  result.steal = steal_between(before, after);
  return result;
}

std::chrono::nanoseconds measure_batch_time(const BenchSettings& settings) {
  constexpr std::chrono::seconds enough{3};
  constexpr std::uint64_t fewest = 20;
  BenchSettings plain = settings;
  plain.step = std::chrono::nanoseconds(0);
  plain.trace = nullptr;
  HostStream stream;
  Pipeline pipeline = make_bench_pipeline(plain);
  SyntheticTrainer trainer(&pipeline, stream, plain.step);
  for (std::uint64_t batch = 0; batch < 2 * settings.prefetch + 4; ++batch) trainer.train_one();
  const Clock::time_point begin = Clock::now();
  std::uint64_t batches = 0;
  for (; batches < fewest || Clock::now() - begin < enough; ++batches) trainer.train_one();
  return (Clock::now() - begin) / batches;
}

}  // namespace millrace::cli
