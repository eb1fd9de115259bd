// SPDX-License-Identifier: Apache-2.0
#include "bench_run.h"

#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <xxhash.h>

#include <array>
#include <vector>

#include "process.h"

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

/// A trainer without a model: takes a batch, enqueues a step on it, and waits for the step before that one, as a trainer does that reads
/// the loss one step late.
class SyntheticTrainer {
 public:
  SyntheticTrainer(Pipeline& pipeline, HostStream& stream, const BenchSettings& settings)
      : pipeline_(pipeline), stream_(stream), step_(settings.step) {
    HostDevice device;
    for (Step& step : steps_) step = {device.make_event(), device.make_event()};
    if (settings.trace) lane_ = &settings.trace->add_lane(settings.trace->add_group("trainer"), "device steps");
  }

  void train_one(Digest* digest) {
    Batch batch = pipeline_.next(stream_);
    if (digest != nullptr) digest->add(batch, stream_);
    const Step& step = steps_[enqueued_ % steps_.size()];
    stream_.record(*step.begin);
    if (step_.count() > 0) stream_.step(step_);
    stream_.record(*step.end);
    batch.reset();
    ++enqueued_;
    if (enqueued_ > 1) wait_for(enqueued_ - 2);
  }

  /// Waits for the last step.
  void finish() {
    if (enqueued_ > 0) wait_for(enqueued_ - 1);
  }

 private:
  struct Step {
    std::unique_ptr<Event> begin;
    std::unique_ptr<Event> end;
  };

  void wait_for(std::size_t number) {
    const Step& step = steps_[number % steps_.size()];
    step.end->wait(std::chrono::hours(1));
    if (lane_ != nullptr && step_.count() > 0) lane_->add("step", *step.begin->passed_at(), *step.end->passed_at());
  }

  Pipeline& pipeline_;
  HostStream& stream_;
  std::chrono::nanoseconds step_;
  Trace::Lane* lane_ = nullptr;
  std::array<Step, 2> steps_;
  std::size_t enqueued_ = 0;
};

}  // namespace

Pipeline make_bench_pipeline(const BenchSettings& settings) {
  PipelineOptions options;
  options.batch_size = settings.batch_size;
  options.seed = settings.seed;
  options.last_batch = settings.dataset->size() >= settings.batch_size ? LastBatch::drop : LastBatch::pad;
  options.prefetch = settings.prefetch;
  options.micro_batches = settings.micro_batches;
  options.runtime = settings.runtime;
  options.trace = settings.trace;
  return Pipeline(
      settings.dataset, image_transform(settings.recipe),
      std::make_shared<HostDevice>(HostDeviceOptions{.copies = true, .copy_bytes_per_second = settings.copy_bytes_per_second}),
      options);
}

BenchResult run_bench(const BenchSettings& settings) {
  std::optional<Digest> digest;
  if (settings.digest) digest.emplace();
  Digest* const digests = digest ? &*digest : nullptr;
  HostStream stream;
  Pipeline pipeline = make_bench_pipeline(settings);
  SyntheticTrainer trainer(pipeline, stream, settings);
  for (std::uint64_t batch = 0; batch < settings.warmup; ++batch) trainer.train_one(digests);

  const ResidentMemory memory(settings.dataset->name());
  if (settings.trace) settings.trace->clear();
  pipeline.restart_report();
  stream.reset_steps();
  const ProcessorTimes before = processor_times();
  const Clock::time_point begin = Clock::now();
  for (std::uint64_t batch = 0; settings.batches > 0 ? batch < settings.batches : Clock::now() - begin < settings.duration;
       ++batch)
    trainer.train_one(digests);
  const ProcessorTimes after = processor_times();

  BenchResult result;
  result.report = pipeline.report();
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
  SyntheticTrainer trainer(pipeline, stream, plain);
  for (std::uint64_t batch = 0; batch < 2 * settings.prefetch + 4; ++batch) trainer.train_one(nullptr);
  const Clock::time_point begin = Clock::now();
  std::uint64_t batches = 0;
  for (; batches < fewest || Clock::now() - begin < enough; ++batches) trainer.train_one(nullptr);
  return (Clock::now() - begin) / batches;
}

}  // namespace millrace::cli
