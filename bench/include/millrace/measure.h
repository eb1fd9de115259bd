// SPDX-License-Identifier: Apache-2.0
// Measuring a trainer from within: how fast its data comes, what bounds it, and what to set, over
// its own dataset, transform, device and step. `millrace bench`, `tune` and `diagnose` are the same
// measurements over a step that they make up.
//
// Threads: `bench`, `tune` and `diagnose` take the calling thread as the trainer's; the step is
// called by it alone. They may be called from any thread, one at a time in a process, and with
// nothing else running: they measure the machine. A `ReportFeed` is for the thread that takes the
// batches.
// Lifetimes: results are plain data, which refers to nothing. What a workload shares is let go when
// the call returns. A `ReportFeed` refers to its pipeline, which outlives it.
#pragma once

#include <millrace/batch.h>
#include <millrace/dataset.h>
#include <millrace/detail/export.h>
#include <millrace/device.h>
#include <millrace/options_file.h>
#include <millrace/pipeline.h>
#include <millrace/report.h>
#include <millrace/transform.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace MILLRACE_API millrace {
namespace measure {

/// A trainer's step on a batch. On a device that copies batches (`Device::copies`) it puts its work
/// on the stream and returns; the step is what the stream does then. On one that does not, the
/// batch lies in host memory, and the step is over when the call returns. What it throws ends the
/// measurement and is thrown by it. It is also called for batches that it had before, and by
/// `diagnose` for samples of zeros, so it should not look at how well it learns.
using Step = std::function<void(const Batch& batch, Stream& stream)>;

/// What a trainer does.
struct Workload {
  std::shared_ptr<const Dataset> dataset{};
  std::shared_ptr<const Transform> transform{};
  std::shared_ptr<Device> device{};
  /// What it computes on; null = a stream that the measurement makes of the device.
  std::shared_ptr<Stream> stream{};
  /// Without one, batches are taken as fast as they come.
  Step step{};
  /// How its pipeline is set. `epochs`, `last_batch`, `resume` and `debug.trace` are not looked at:
  /// a measurement runs as long as it is told, over batches that are full.
  PipelineOptions pipeline{};
};

/// How long to measure.
struct BenchOptions {
  /// Batches before measuring begins.
  std::uint64_t warmup = 10;
  /// Measure so many batches; 0 = for as long as `duration`.
  std::uint64_t batches = 0;
  std::chrono::nanoseconds duration = std::chrono::seconds(5);
  /// Whether to make `BenchResult::page`. It shows every span, and tracing all of them takes a
  /// little time of the workers'.
  bool page = false;
};

/// What a trainer reached.
struct BenchResult {
  /// Of the measured time.
  Report report{};
  /// Which stage bounds it; with a step it knows how idle the device was.
  Verdict verdict{};
  double samples_per_second = 0;
  /// The share of time between steps, 0 to 1: from the end of one to the start of the next.
  /// Nullopt without a step, or if the device tells no times.
  std::optional<double> device_idle{};
  /// What a step took, a mean; on a device that does not copy, with workers beside it.
  std::optional<double> step_ms{};
  /// 1 - the time of the same steps on a batch that is there already / that of the measured ones.
  std::optional<double> idle_by_synthetic{};
  /// `device_idle` of the same steps on a batch that is there already: the least for any loader.
  std::optional<double> idle_floor{};
  /// From one batch handed out to the next, each.
  std::vector<double> batch_ms{};
  /// Processor time of the trainer's thread for the loader, a batch's mean, in microseconds.
  double consumer_us = 0;
  /// Of the process, all threads.
  double cpu_seconds = 0;
  /// The share of the machine's processor time, 0 to 1, that other programs took while none was
  /// left over.
  double disturbed = 0;
  /// What is not as it should be, a sentence each.
  std::vector<std::string> warnings{};
  /// For people, for programs (the keys of `millrace bench --json`), and for people as one HTML
  /// file, which is empty unless it was asked for.
  std::string text{};
  std::string json{};
  std::string page{};
};

/// Runs the trainer's loop: a batch, a step on it, and so on, one step ahead of the one that is
/// waited for. Throws `Error` (`invalid_argument`) for a workload without dataset, transform or
/// device, and what pipelines, devices and the step throw.
BenchResult bench(const Workload& workload, const BenchOptions& options = {});

/// What `tune` searches for.
struct Setting {
  unsigned workers = 1;
  std::size_t prefetch = 8;
  std::size_t micro_batches = 1;
  std::size_t batch_size = 64;

  friend bool operator==(const Setting&, const Setting&) = default;
};

/// What to search, and for how long.
struct TuneOptions {
  /// Tries no more workers; 0 = one per usable processor.
  unsigned max_workers = 0;
  /// Whether the batch size is searched, from `PipelineOptions::batch_size` on. It always is with
  /// one of the limits.
  bool batch_size = false;
  /// The largest batch that takes no longer at the 99th percentile.
  std::optional<double> p99_ms{};
  /// The largest batch with which slots and scratch keep within so many bytes.
  std::optional<std::size_t> memory_bytes{};
  /// Time for everything; what does not fit in is said.
  std::chrono::duration<double> budget = std::chrono::seconds(100);
  /// Told of each setting that is about to run, if it is given.
  std::function<void(const Setting&)> on_run{};
};

/// What the runs of a setting came to.
struct MeasuredSetting {
  Setting setting{};
  /// Those that count; runs that other programs disturbed do not, if there are enough others.
  std::size_t runs = 0;
  double samples_per_second = 0;
  double samples_per_second_sd = 0;
  double batch_p50_ms = 0;
  double batch_p99_ms = 0;
  /// A mean; nullopt where throughput decides.
  std::optional<double> device_idle{};
  std::size_t memory_bytes = 0;
};

/// What was found.
struct TuneResult {
  Setting chosen{};
  /// The chosen setting with its reasons, for `save_options`.
  SavedOptions options{};
  /// What the step takes alone, for a batch of `PipelineOptions::batch_size`; 0 without one.
  double step_ms = 0;
  /// All that were tried.
  std::vector<MeasuredSetting> settings{};
  /// Whether the device is surely idle for no more than 2% of the time.
  bool feeds_step = false;
  /// Nothing surely feeds the step, noise hid the best setting, or other programs disturbed runs.
  bool doubtful = false;
  /// A sentence: what was chosen and why; and the same with all that is to say.
  std::string verdict{};
  std::string why{};
  std::vector<std::string> warnings{};
  /// For people, for programs (as `millrace tune --json`), and for people as one HTML file.
  std::string text{};
  std::string json{};
  std::string page{};
};

/// Finds the smallest setting that serves the trainer: workers, then prefetch, micro-batches, and
/// the batch size if it is to.
/// - On a device that copies, the step's time is the device's, whatever the workers do: the
///   smallest setting is taken that feeds it (idle for at most 2% of the time, with 95%
///   confidence).
/// - On one that does not, the step and the workers share the processors, and a setting may make
///   the step slower: the fewest workers, and the least prefetch, are taken with which the trainer
///   surely loses no more than 5% of its best throughput.
/// `workload.pipeline.runtime` is not looked at. Throws what `bench` throws.
TuneResult tune(const Workload& workload, const TuneOptions& options = {});

/// How long to look.
struct DiagnoseOptions {
  /// How often each phase is measured; more find smaller stalls. At least 2.
  unsigned rounds = 3;
  /// How many batches a phase of a round has; 0 = as many as `duration` takes.
  std::uint64_t batches = 0;
  std::chrono::nanoseconds duration = std::chrono::seconds(2);
  /// Opens the dataset anew, which nobody else in the process may have open then: so its pages can
  /// be dropped from the page cache, and fetching is measured. `Workload::dataset` may be null.
  /// Without it the fetch stall is left out.
  std::function<std::shared_ptr<const Dataset>()> open{};
};

/// A part of an epoch's time.
struct EpochTime {
  /// "compute", "trainer", "copy", "preparation" or "fetch".
  std::string name{};
  double batch_ms = 0;
  /// Half of the 95% confidence interval of its mean.
  double noise_ms = 0;
  /// Of the epoch, 0 to 1.
  double share = 0;
  /// Whether noise hides what matters.
  bool unsure = false;
};

/// Where an epoch's time goes.
struct DiagnoseResult {
  std::vector<EpochTime> parts{};
  /// Their sum.
  double batch_ms = 0;
  /// Why there is no part "fetch", a sentence; empty if there is one.
  std::string no_fetch{};
  Verdict verdict{};
  std::vector<std::string> warnings{};
  /// For people, for programs (as `millrace diagnose --json`), and for people as one HTML file.
  std::string text{};
  std::string json{};
  std::string page{};
};

/// Divides an epoch's time by differences: the step alone, on a batch that is there already, with
/// copies of samples that need no making, with the whole loader, and from storage. Throws `Error`
/// (`invalid_argument`) also for a workload without a step, and what `bench` throws.
DiagnoseResult diagnose(const Workload& workload, const DiagnoseOptions& options = {});

/// Tells a trainer in production what happened since it last told, every so many batches. Reports
/// begin anew each time (`Pipeline::take_report`): of a pipeline with a feed,
/// `Pipeline::report` tells what happened since then. What it costs is on bench/'s page.
class ReportFeed {
 public:
  /// Given a report of these batches alone: its times, counts, percentiles and verdict are theirs,
  /// its bad records those found meanwhile. Memory and warnings are those of now.
  using Told = std::function<void(const Report& delta)>;

  /// Tells `told` at every `every` batches, from the next one on. Throws `Error`
  /// (`invalid_argument`) if `every` is 0 or nobody is to be told.
  ReportFeed(Pipeline& pipeline, std::uint64_t every, Told told);

  /// To be called for each batch that was taken. Calls `told` on this thread if it was the last one
  /// of so many; what that throws is thrown here.
  void count();
  /// Tells of the batches since it last told, if there are any: at the end of a run.
  void flush();

 private:
  void tell();

  Pipeline& pipeline_;
  std::uint64_t every_;
  Told told_;
  std::uint64_t counted_ = 0;
  /// Of the bad records: what was told, and how many of the report's list.
  std::uint64_t bad_records_ = 0;
  std::size_t listed_ = 0;
};

}  // namespace measure
}  // namespace millrace
