// SPDX-License-Identifier: Apache-2.0
// Measurements of a trainer from within its own process: how fast batches arrive, which stage
// limits the rate, and which settings to use. They run over the trainer's own dataset, transform,
// device and step. `millrace bench`, `tune` and `diagnose` run the same measurements over a
// synthetic step.
//
// Threads: `bench`, `tune` and `diagnose` may be called from any thread, one at a time in a
// process. The calling thread acts as the trainer's thread; only this thread calls the step.
// Nothing else should run meanwhile, since the whole machine is measured. A `ReportFeed` belongs to
// the thread that takes the batches.
// Lifetimes: results are plain data without references. When a call returns, it no longer holds the
// shared objects of its workload. A `ReportFeed` refers to its pipeline, which must outlive it.
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

/// A trainer's step on a batch. On a device that copies batches (`Device::copies`), the callable
/// enqueues its work on the stream and returns; the step is that work. On any other device the
/// batch lies in host memory, and the step ends when the callable returns. An exception of the step
/// ends the measurement, which rethrows it. The step is also called again with earlier batches, and
/// `diagnose` also calls it with samples of zeros. So it should not check whether the model learns.
using Step = std::function<void(const Batch& batch, Stream& stream)>;

/// A trainer's dataset, transform, device and step, and the options of its pipeline.
struct Workload {
  std::shared_ptr<const Dataset> dataset{};
  std::shared_ptr<const Transform> transform{};
  std::shared_ptr<Device> device{};
  /// Stream of the step. Null = the measurement makes a stream of the device.
  std::shared_ptr<Stream> stream{};
  /// Empty = no step: batches are taken as fast as they come.
  Step step{};
  /// Called on the calling thread several times per second: before batches, and while it waits for
  /// one. An exception ends the measurement, which rethrows it. Empty = not called.
  std::function<void()> poll{};
  /// Options of the pipeline. `epochs`, `last_batch`, `resume` and `debug.trace` are ignored: the
  /// length of a measurement is given by its own options, and all its batches are full. Without a
  /// runtime, a measurement makes one with this rank's share of the host, as a pipeline does.
  PipelineOptions pipeline{};
};

/// Length of a measurement.
struct BenchOptions {
  /// Batches before the measurement begins.
  std::uint64_t warmup = 10;
  /// Number of batches to measure. 0 = as many as fit into `duration`.
  std::uint64_t batches = 0;
  std::chrono::nanoseconds duration = std::chrono::seconds(5);
  /// Whether to make `BenchResult::page`. The page shows every span; tracing the spans takes a
  /// little time of the workers.
  bool page = false;
};

/// Result of `bench`.
struct BenchResult {
  /// Report of the measured time.
  Report report{};
  /// The stage that limits the rate. With a step, the verdict takes the device's idle time into
  /// account.
  Verdict verdict{};
  double samples_per_second = 0;
  /// Share of the time, 0 to 1, between the end of each step and the start of the next one. Nullopt
  /// without a step, or if the device cannot measure times.
  std::optional<double> device_idle{};
  /// Mean time of a step. On a device that does not copy, step and workers share the processors, so
  /// the workers may make the step longer.
  std::optional<double> step_ms{};
  /// Share of the time that the loader costs: 1 - (mean time of the same step on a batch that is
  /// already on the device) / (mean of `batch_ms`). Noise can make it negative.
  std::optional<double> idle_by_synthetic{};
  /// `device_idle` of the same steps on a batch that is already on the device: the lowest value
  /// that any loader can reach.
  std::optional<double> idle_floor{};
  /// Time of each measured batch, in milliseconds, from one hand-out to the next.
  std::vector<double> batch_ms{};
  /// Mean processor time that the trainer's thread spends in the loader for a batch, in
  /// microseconds.
  double consumer_us = 0;
  /// Processor time of all threads of the process.
  double cpu_seconds = 0;
  /// Share of the machine's processor time, 0 to 1, that other programs and virtual machines took.
  /// It is 0 if more than 5% of the machine's processor time was unused, or if this time is less
  /// than a second in total.
  double disturbed = 0;
  /// Conditions that make the result less reliable, a sentence each.
  std::vector<std::string> warnings{};
  /// The result as text, as JSON (the keys of `millrace bench --json`), and as an HTML page. The
  /// page is empty unless `BenchOptions::page` is set.
  std::string text{};
  std::string json{};
  std::string page{};
};

/// Runs the trainer's loop: takes a batch, runs a step on it, and so on. The loop enqueues each
/// step before it waits for the previous one. Throws `Error` (`invalid_argument`) for a workload
/// without dataset, transform or device, or an option out of range. Also throws the errors of
/// pipelines, devices and the step.
BenchResult bench(const Workload& workload, const BenchOptions& options = {});

/// The variables that `tune` searches over.
struct Setting {
  unsigned workers = 1;
  std::size_t prefetch = 8;
  std::size_t micro_batches = 1;
  std::size_t batch_size = 64;
  /// `Recipe::device_share`; nullopt = as in `Workload::transform`.
  std::optional<double> device_share{};

  friend bool operator==(const Setting&, const Setting&) = default;
};

/// Search space and time limit of `tune`.
struct TuneOptions {
  /// Largest number of workers to try. 0 = one per usable processor of this rank's share of the
  /// host (`Workload::pipeline.ranks`).
  unsigned max_workers = 0;
  /// Whether to search the batch size, starting from `PipelineOptions::batch_size`. Setting one of
  /// the two limits below turns this on.
  bool batch_size = false;
  /// Limit for the batch time's 99th percentile. `tune` finds the largest batch size within the
  /// limit.
  std::optional<double> p99_ms{};
  /// Limit for the memory of slots and scratch, in bytes. `tune` finds the largest batch size
  /// within the limit.
  std::optional<std::size_t> memory_bytes{};
  /// Makes `Workload::transform` with another `Recipe::device_share`, 0 to 1. If it is set, `tune`
  /// searches the share, for recipes with `DecodeOn::device`. Called on the calling thread; an
  /// exception ends the search, which rethrows it. Empty = the share is not searched.
  std::function<std::shared_ptr<const Transform>(double share)> transform_of_share{};
  /// Time limit for the whole search. The result names the settings that were left out.
  std::chrono::duration<double> budget = std::chrono::seconds(100);
  /// Called before each run of a setting. Empty = not called.
  std::function<void(const Setting&)> on_run{};
};

/// Statistics of the runs of a setting.
struct MeasuredSetting {
  Setting setting{};
  /// Number of runs that count. Runs that other programs disturbed do not count if enough others
  /// are left.
  std::size_t runs = 0;
  double samples_per_second = 0;
  double samples_per_second_sd = 0;
  double batch_p50_ms = 0;
  double batch_p99_ms = 0;
  /// Mean of `BenchResult::device_idle`. nullopt if `tune` chooses by throughput.
  std::optional<double> device_idle{};
  std::size_t memory_bytes = 0;
};

/// Result of `tune`.
struct TuneResult {
  Setting chosen{};
  /// The chosen setting with its reasons, for `save_options`.
  SavedOptions options{};
  /// Time of the step alone for a batch of `PipelineOptions::batch_size`; 0 without a step.
  double step_ms = 0;
  /// All settings that were tried.
  std::vector<MeasuredSetting> settings{};
  /// Whether the device is idle for at most 2% of the time, with 95% confidence.
  bool feeds_step = false;
  /// True if no setting feeds the step with certainty, if noise hid the best setting, or if other
  /// programs disturbed runs.
  bool doubtful = false;
  /// `verdict`: one sentence with the choice and its reason. `why`: the same with all warnings and
  /// reasons.
  std::string verdict{};
  std::string why{};
  std::vector<std::string> warnings{};
  /// The result as text, as JSON (the keys of `millrace tune --json`), and as an HTML page.
  std::string text{};
  std::string json{};
  std::string page{};
};

/// Finds the smallest setting that is fast enough for the trainer. It searches one variable after
/// the other: workers, the device's share of the images (if asked for), prefetch, micro-batches,
/// and the batch size (if asked for).
/// - On a device that copies, the step's time does not depend on the workers. `tune` takes the
///   smallest setting that feeds the step: the device is idle for at most 2% of the time, with 95%
///   confidence. If no setting does, `tune` chooses by throughput, as in the next item.
/// - On any other device the step and the workers share the processors, so more workers may make
///   the step slower. `tune` takes the fewest workers whose throughput is, with statistical
///   certainty, at most 5% below the best. If the runs do not decide, the limit is 10%. Then `tune`
///   takes the smallest prefetch, with a limit of 5%.
/// - For the device's share of the images, it tries 0, 0.25, 0.5, 0.75 and 1 with these workers. It
///   takes the smallest share whose throughput is at most 5% below the best. If the step then still
///   comes less often than alone, it also tries the shares with all workers, and then with fewer.
/// `workload.pipeline.runtime` is ignored. Throws the same errors as `bench`.
TuneResult tune(const Workload& workload, const TuneOptions& options = {});

/// Phases and rounds of `diagnose`.
struct DiagnoseOptions {
  /// Number of rounds, at least 2. Each round measures every phase once; more rounds find smaller
  /// stalls.
  unsigned rounds = 3;
  /// Number of batches in a phase of a round. 0 = as many as fit into `duration`.
  std::uint64_t batches = 0;
  std::chrono::nanoseconds duration = std::chrono::seconds(2);
  /// Opens the dataset. The fetch stall is measured only if this is set; `Workload::dataset` may
  /// then be null. Nothing else in the process may have the dataset open, so that its pages can be
  /// dropped from the page cache.
  std::function<std::shared_ptr<const Dataset>()> open{};
};

/// One part of an epoch's time.
struct EpochTime {
  /// "compute", "trainer", "copy", "preparation" or "fetch".
  std::string name{};
  double batch_ms = 0;
  /// Half the width of the 95% confidence interval of the mean.
  double noise_ms = 0;
  /// Share of the epoch, 0 to 1.
  double share = 0;
  /// Whether noise is too large to judge this part.
  bool unsure = false;
};

/// Result of `diagnose`.
struct DiagnoseResult {
  std::vector<EpochTime> parts{};
  /// Sum of the parts.
  double batch_ms = 0;
  /// The reason, a sentence, if the part "fetch" is missing; else empty.
  std::string why_no_fetch{};
  Verdict verdict{};
  std::vector<std::string> warnings{};
  /// The result as text, as JSON (the keys of `millrace diagnose --json`), and as an HTML page.
  std::string text{};
  std::string json{};
  std::string page{};
};

/// Divides an epoch's time into parts, which are differences between measured phases. Each phase
/// adds to the one before: the step alone; a trainer's loop over ready batches; copies of samples
/// that need no work; the whole loader; reading records from storage. Throws `Error`
/// (`invalid_argument`) for a workload without a step. Also throws the errors of `bench`.
DiagnoseResult diagnose(const Workload& workload, const DiagnoseOptions& options = {});

/// Calls back with a report of the last batches, for monitoring in production. Each report covers
/// only the batches since the previous one. The feed calls `Pipeline::take_report`, so
/// `Pipeline::report` also covers only the time since then. bench/measure/README.md states the
/// cost.
class ReportFeed {
 public:
  /// Callback for a report. Times, counts, percentiles, verdict and bad records cover only the
  /// batches since the last report. Memory and warnings are the current ones.
  using Callback = std::function<void(const Report& delta)>;

  /// Calls `on_report` after each `every` batches, counted from now. Throws `Error`
  /// (`invalid_argument`) if `every` is 0 or `on_report` is empty.
  ReportFeed(Pipeline& pipeline, std::uint64_t every, Callback on_report);

  /// Counts a batch. Call it once for each batch. After `every` batches it calls `on_report` on the
  /// calling thread, and passes its exceptions on.
  void count();
  /// Reports the batches since the last report, if there are any. Call it at the end of a run.
  void flush();

 private:
  void call_back();

  Pipeline& pipeline_;
  std::uint64_t every_;
  Callback on_report_;
  std::uint64_t counted_ = 0;
  /// Number of bad records already reported, and the length of their list at that time.
  std::uint64_t bad_records_ = 0;
  std::size_t listed_ = 0;
};

}  // namespace measure
}  // namespace millrace
