// SPDX-License-Identifier: Apache-2.0
#include "measure/diagnose/diagnose_run.h"

#include <fmt/format.h>
#include <millrace/error.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "measure/bench/synthetic_trainer.h"
#include "measure/diagnose/diagnose_sources.h"
#include "measure/diagnose/page_cache.h"
#include "measure/machine/process.h"
#include "measure/machine/touch_bytes.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Minimum number of batches in a phase, however long they take.
constexpr std::uint64_t fewest_batches = 3;
/// Maximum number of repetitions of a short pass: each costs a new pipeline.
constexpr std::uint64_t max_passes = 10;
/// Maximum number of steps in the phase of steps alone.
constexpr std::uint64_t max_steps = 10000;
/// For a cold pass, at most this share of the dataset's pages may remain in the page cache.
constexpr double may_stay = 0.02;

/// Returns the bytes fetched from storage between two readings of the counter.
std::optional<std::uint64_t> fetched(std::optional<std::uint64_t> before,
                                     std::optional<std::uint64_t> after) {
  if (!before || !after) return std::nullopt;
  return *after - *before;
}

void add(std::optional<std::uint64_t>& sum, std::optional<std::uint64_t> value) {
  if (value) sum = sum.value_or(0) + *value;
}

class Diagnosis {
 public:
  explicit Diagnosis(const DiagnoseSettings& settings)
      : settings_(settings), bench_(settings.bench) {
    bench_.dataset.reset();
    // Each phase opens the dataset anew and keeps no hints or samples, so that it measures a first
    // epoch.
    bench_.pipeline.index_bytes = 0;
    bench_.pipeline.cache_bytes = 0;
  }

  DiagnoseResult run() {
    look_at_dataset();
    choose_lengths();
    for (unsigned round = 0; round < settings_.rounds; ++round) {
      result_.times.step.push_back(time_steps());
      result_.times.ready_batch.push_back(time_ready_batch());
      result_.times.copies.push_back(time_copies());
      result_.times.loader.push_back(time_loader());
      if (result_.cold.missing.empty()) time_passes();
    }
    result_.device_idle = steps_.idle.count() > 0
                              ? static_cast<double>(steps_.idle.count()) /
                                    static_cast<double>((steps_.idle + steps_.busy).count())
                              : 0;
    return std::move(result_);
  }

 private:
  /// Result of a timed loop.
  struct Loop {
    double batch_ms = 0;
    Report report{};
  };

  void look_at_dataset();
  void choose_lengths();
  void open_sample();
  void close_dataset();
  void read_all() const;

  std::shared_ptr<const Dataset> open() const {
    return settings_.open ? settings_.open() : settings_.bench.dataset;
  }
  std::unique_ptr<TrainerStream> make_stream() const {
    return bench_.device->make_trainer_stream(bench_.step_work());
  }
  /// Returns a batch of the sampled records if the step uses its batch; else an empty one.
  Batch ready(TrainerStream& stream);

  Loop time_loop(Pipeline* pipeline, SyntheticTrainer& trainer,
                 std::chrono::nanoseconds duration) const;
  double time_steps();
  double time_ready_batch();
  double time_copies() const;
  double time_loader();
  void time_passes();
  bool drop_pages();
  double time_pass();

  const DiagnoseSettings& settings_;
  /// Settings of all phases. The dataset in them is set only while it is open.
  BenchSettings bench_;
  std::vector<std::filesystem::path> files_;
  DiagnoseResult result_;
  StepStatistics steps_;
};

void Diagnosis::look_at_dataset() {
  bench_.dataset = open();
  result_.records = bench_.dataset->size();
  files_ = files_with_records(*bench_.dataset);
  for (const auto& file : files_) result_.dataset_bytes += std::filesystem::file_size(file);
  if (files_.empty())
    result_.cold.missing =
        "the dataset lies in no files whose pages could be dropped from the page cache";
  else if (!settings_.open)
    result_.cold.missing = "the dataset stays open, so its pages stay in the page cache";
}

/// Chooses the number of batches in a pass and of records to sample.
void Diagnosis::choose_lengths() {
  std::uint64_t wanted = bench_.batches;
  if (wanted == 0) {
    constexpr std::chrono::milliseconds enough{300};
    const auto stream = bench_.device->make_trainer_stream({});
    Pipeline pipeline = make_bench_pipeline(bench_);
    SyntheticTrainer trainer(&pipeline, *stream);
    const double batch_ms =
        std::max(time_loop(&pipeline, trainer, enough).batch_ms, milliseconds(bench_.step));
    wanted = std::max(fewest_batches,
                      static_cast<std::uint64_t>(milliseconds(bench_.duration) / batch_ms));
  }
  close_dataset();
  const std::uint64_t in_epoch =
      std::max<std::uint64_t>(1, result_.records / bench_.pipeline.batch_size);
  result_.pass_batches = std::min(std::max(wanted, fewest_batches), in_epoch);
  result_.passes_per_round = static_cast<unsigned>(
      std::clamp<std::uint64_t>(wanted / result_.pass_batches, 1, max_passes));
  result_.sampled_records =
      std::min<std::uint64_t>(result_.records, result_.pass_batches * bench_.pipeline.batch_size);
}

void Diagnosis::open_sample() {
  bench_.dataset = std::make_shared<SampledDataset>(open(), result_.sampled_records,
                                                    settings_.bench.pipeline.seed);
}

/// Releases the dataset and waits until its file is unmapped: a worker may still be finishing its
/// last job.
void Diagnosis::close_dataset() {
  const std::weak_ptr<const Dataset> closing = std::exchange(bench_.dataset, nullptr);
  if (!settings_.open) return;  // the caller keeps the dataset open
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(5);
  while (!closing.expired() && Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Reads every record into the page cache. The pipeline's policy applies to bad records.
void Diagnosis::read_all() const {
  const auto reader = bench_.dataset->make_reader();
  for (std::uint64_t index = 0; index < bench_.dataset->size(); ++index) {
    try {
      touch_bytes(reader->read(index));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_record) throw;
    }
  }
}

Batch Diagnosis::ready(TrainerStream& stream) {
  if (!bench_.user_step) return {};
  open_sample();
  Batch batch = ready_batch(bench_, stream);
  close_dataset();
  return batch;
}

/// Times the training loop after a warm-up. Without a pipeline, every step uses a batch that is
/// already made.
Diagnosis::Loop Diagnosis::time_loop(Pipeline* pipeline, SyntheticTrainer& trainer,
                                     std::chrono::nanoseconds duration) const {
  for (std::uint64_t batch = 0; batch < bench_.pipeline.slots.prefetch + 2; ++batch)
    trainer.train_one();
  if (pipeline != nullptr) pipeline->restart_report();
  trainer.restart();
  const Clock::time_point begin = Clock::now();
  std::uint64_t batches = 0;
  while (bench_.batches > 0 ? batches < bench_.batches
                            : batches < fewest_batches || Clock::now() - begin < duration) {
    trainer.train_one();
    ++batches;
  }
  Loop loop;
  loop.batch_ms = milliseconds(Clock::now() - begin) / static_cast<double>(batches);
  if (pipeline != nullptr) loop.report = pipeline->report();
  trainer.finish();
  return loop;
}

/// Times the device's steps alone, queued one after the other.
double Diagnosis::time_steps() {
  const std::uint64_t steps =
      bench_.batches > 0 ? bench_.batches
                         : std::clamp(static_cast<std::uint64_t>(bench_.duration / bench_.step),
                                      fewest_batches, max_steps);
  const auto stream = make_stream();
  const Batch batch = ready(*stream);
  const Clock::time_point begin = Clock::now();
  for (std::uint64_t step = 0; step < steps; ++step) {
    stream->step(batch);
    if (stream->queued() == TrainerStream::max_queued) stream->finish_oldest();
  }
  while (stream->queued() > 0) stream->finish_oldest();
  return milliseconds(Clock::now() - begin) / static_cast<double>(steps);
}

double Diagnosis::time_ready_batch() {
  const auto stream = make_stream();
  SyntheticTrainer trainer(ready(*stream), *stream);
  return time_loop(nullptr, trainer, bench_.duration).batch_ms;
}

/// Times the pipeline without reading records and making samples. All other parts of the loader run
/// as usual: slots, copies, double buffering and hand-out.
double Diagnosis::time_copies() const {
  BenchSettings ready = bench_;
  ready.dataset = std::make_shared<EmptyRecords>(result_.sampled_records);
  ready.transform = ready_samples(bench_.transform);
  const auto stream = make_stream();
  Pipeline pipeline = make_bench_pipeline(ready);
  SyntheticTrainer trainer(&pipeline, *stream);
  return time_loop(&pipeline, trainer, bench_.duration).batch_ms;
}

double Diagnosis::time_loader() {
  open_sample();
  read_all();
  const auto before = bytes_from_storage();
  Loop loop;
  {
    const auto stream = make_stream();
    // With a trace, the report has each stage of the device. This trace keeps no spans.
    BenchSettings traced = bench_;
    traced.trace = std::make_shared<Trace>(TraceOptions{.max_events = 0, .lanes = {"conversions"}});
    Pipeline pipeline = make_bench_pipeline(traced);
    SyntheticTrainer trainer(&pipeline, *stream);
    const ProcessorTimes times_before = processor_times();
    loop = time_loop(&pipeline, trainer, bench_.duration);
    const StepStatistics steps = stream->statistics();
    steps_.idle += steps.idle;
    steps_.busy += steps.busy;
    result_.disturbed =
        std::max(result_.disturbed, taken_by_others(times_before, processor_times()));
  }
  add(result_.warm_storage_bytes, fetched(before, bytes_from_storage()));
  close_dataset();
  result_.report = std::move(loop.report);
  return loop.batch_ms;
}

/// Runs cold and warm passes alternately, each with a new pipeline, so that a cold pass reads all
/// its records for the first time. The times of both include the pipeline's start.
void Diagnosis::time_passes() {
  double cold_ms = 0;
  double warm_ms = 0;
  for (unsigned pass = 0; pass < result_.passes_per_round; ++pass) {
    if (!drop_pages()) {
      result_.times.cold_pass.clear();
      result_.times.warm_pass.clear();
      return;
    }
    const auto before = bytes_from_storage();
    const Clock::time_point begin = Clock::now();
    cold_ms += time_pass();
    result_.cold.seconds += std::chrono::duration<double>(Clock::now() - begin).count();
    add(result_.cold.storage_bytes, fetched(before, bytes_from_storage()));
    warm_ms += time_pass();
  }
  result_.times.cold_pass.push_back(cold_ms / result_.passes_per_round);
  result_.times.warm_pass.push_back(warm_ms / result_.passes_per_round);
}

/// Drops the dataset's pages from the page cache. If that fails, stores the reason in the result.
bool Diagnosis::drop_pages() {
  try {
    drop_from_cache(files_);
    const double kept = cached_bytes(files_).share();
    result_.cold.kept = std::max(result_.cold.kept, kept);
    if (kept <= may_stay) return true;
    const bool in_memory = std::ranges::any_of(files_, lies_in_memory);
    result_.cold.missing = fmt::format(
        "{:.1f}% of the dataset's pages stay in the page cache when they are dropped: {}",
        100 * kept,
        in_memory ? "it lies in a memory file system, which has no storage behind it"
                  : "another process has the file mapped, or it belongs to another user (Linux "
                    "then does not tell)");
  } catch (const Error& error) {
    result_.cold.missing =
        std::string("the page cache cannot be emptied of the dataset: ") + error.what();
  }
  return false;
}

double Diagnosis::time_pass() {
  open_sample();
  Clock::duration first{0};
  Clock::duration all{0};
  {
    const auto stream = make_stream();
    Pipeline pipeline = make_bench_pipeline(bench_);
    SyntheticTrainer trainer(&pipeline, *stream);
    const Clock::time_point begin = Clock::now();
    for (std::uint64_t batch = 0; batch < result_.pass_batches; ++batch) {
      trainer.train_one();
      all = Clock::now() - begin;
      if (batch == 0) first = all;
    }
    trainer.finish();
  }
  close_dataset();
  return from_start_ms(
      milliseconds(first), milliseconds(all - first), static_cast<double>(result_.pass_batches),
      static_cast<double>(result_.records) / static_cast<double>(bench_.pipeline.batch_size));
}

}  // namespace

DiagnoseResult run_diagnose(const DiagnoseSettings& settings) { return Diagnosis(settings).run(); }

}  // namespace millrace::cli
