// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/conversion.h>
#include <millrace/dataset.h>
#include <millrace/pipeline.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/device/bench_device.h"
#include "measure/device/copy_rate.h"

namespace millrace::cli {

inline double milliseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

/// What is measured: a pipeline over a dataset, and the step it feeds.
struct BenchSettings {
  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<const Transform> transform;
  /// What the transform makes of records, as a JSON object: a recipe. Empty if that is not known.
  std::string recipe{};
  std::shared_ptr<Runtime> runtime;
  std::shared_ptr<const BenchDevice> device;
  std::size_t batch_size = 64;
  std::size_t prefetch = 4;
  std::size_t micro_batches = 1;
  std::uint64_t seed = 0;
  /// What else the pipeline is given. What has a place of its own here, its epochs and its last
  /// batch are not looked at.
  PipelineOptions others{};
  /// `PipelineOptions::index_bytes`
  std::optional<std::size_t> index_bytes{};
  /// `PipelineOptions::cache_bytes`
  std::size_t cache_bytes = 0;
  /// What the device makes of the images; nullopt = they stay uint8, NHWC.
  std::optional<Conversion> conversion{};
  /// Time of a step on the device; 0 = none.
  std::chrono::nanoseconds step{0};
  /// Or a step is a product of bfloat16 matrices with so many rows; 0 = it is not.
  std::size_t gemm = 0;
  /// Or a step is a trainer's own, and `step` is what it takes, for people.
  std::function<void(const Batch&, Stream&)> own_step{};
  /// Batches before measuring begins.
  std::uint64_t warmup = 0;
  /// How long to measure: so many epochs or batches, or for this long if both are 0.
  std::uint64_t epochs = 0;
  std::uint64_t batches = 0;
  std::chrono::nanoseconds duration{0};
  bool digest = false;
  /// What is not as it should be with the settings, a sentence each.
  std::vector<std::string> warnings{};
  /// Gets every span of the measured time, with a lane of the steps; null = nothing is traced.
  std::shared_ptr<Trace> trace{};

  StepWork step_work() const { return {step, gemm, own_step}; }
};

/// The lanes that `run_bench` itself needs of a trace: for `TraceOptions::lanes`.
std::vector<std::string> bench_lanes();

/// Processor time per batch, in microseconds.
struct ConsumerTime {
  double mean_us = 0;
  double p50_us = 0;
  double p99_us = 0;
};

/// What came out.
struct BenchResult {
  Report report;
  Verdict verdict;
  /// Share of the time that the stream had nothing to run, 0 to 1; nullopt without a step.
  std::optional<double> device_idle;
  /// A step's time on the device, a mean; nullopt without a step.
  std::optional<double> device_step_ms;
  /// Of the pipeline's micro-batches; nullopt without a trace.
  std::optional<CopyRate> copies;
  /// Share of the copies' time that lies under steps, 0 to 1; nullopt without a trace or a
  /// step.
  std::optional<double> copy_hidden;
  /// Of the trainer's thread: in `next` and in letting batches go.
  ConsumerTime consumer;
  /// From the end of the warm-up to the end, in bytes: of the process's own resident memory (with
  /// what a trace takes; nullopt where the system does not tell), and of the device's, if it has
  /// any.
  std::optional<std::int64_t> rss_growth;
  std::optional<std::int64_t> device_memory_growth;
  /// Time of each measured batch: from one handed out to the next.
  std::vector<double> batch_ms;
  /// Of each epoch that was measured as a whole, samples per second; only if epochs were asked for.
  std::vector<double> epoch_rates;
  /// XXH3-64 of all batches from the first on, in order: indices, and labels and pixels, or all
  /// fields where there are no images.
  std::optional<std::uint64_t> digest;
  /// Largest resident memory of the process beyond the dataset's mapped file, in bytes; nullopt
  /// where the system does not tell.
  std::optional<std::size_t> peak_rss_beyond_map;
  double cpu_seconds = 0;
  /// Share of the machine's processor time that the hypervisor gave to others, 0 to 1.
  double steal = 0;
  /// See `taken_by_others`.
  double disturbed = 0;
};

/// The pipeline that a bench measures, or one like it on `device`.
Pipeline make_bench_pipeline(const BenchSettings& settings,
                             std::shared_ptr<Device> device = nullptr);

/// A batch for steps that need no loader, from a pipeline that has ended. Steps that do not look at
/// theirs are given none. `stream` outlives it.
Batch ready_batch(const BenchSettings& settings, TrainerStream& stream);

/// Runs warm-up and measurement.
BenchResult run_bench(const BenchSettings& settings);

/// The loader's own time per batch: batches taken as fast as they come, without a step.
std::chrono::nanoseconds measure_batch_time(const BenchSettings& settings);

}  // namespace millrace::cli
