// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// The pipeline to measure, and the step that it feeds.
struct BenchSettings {
  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<const Transform> transform;
  /// The transform's recipe as a JSON object; empty if it is unknown.
  std::string recipe{};
  /// Makes the transform with another share of images for the device (`Recipe::device_share`), for
  /// `tune`. Empty = `tune` does not search the share.
  std::function<std::shared_ptr<const Transform>(double share)> transform_of_share{};
  std::shared_ptr<const BenchDevice> device;
  /// With its runtime. `epochs` and `last_batch` are ignored.
  PipelineOptions pipeline{};
  /// Duration of a step on the device; 0 = no such step.
  std::chrono::nanoseconds step{0};
  /// Alternative step: a product of bfloat16 matrices with this number of rows; 0 = no such step.
  std::size_t gemm = 0;
  /// Alternative step: the trainer's own. `step` then only has its duration, for people.
  std::function<void(const Batch&, Stream&)> user_step{};
  /// Batches before the measurement begins.
  std::uint64_t warmup = 0;
  /// Length of the measurement in epochs or batches; by `duration` if both are 0.
  std::uint64_t epochs = 0;
  std::uint64_t batches = 0;
  std::chrono::nanoseconds duration{0};
  bool digest = false;
  /// Warnings about the settings, a sentence each.
  std::vector<std::string> warnings{};
  /// Trace for every span of the measured time, with a lane of the steps; null = no trace.
  std::shared_ptr<Trace> trace{};

  StepWork step_work() const { return {step, gemm, user_step}; }
};

/// Lanes that `run_bench` itself needs in a trace, for `TraceOptions::lanes`.
std::vector<std::string> bench_lanes();

/// Processor time per batch, in microseconds.
struct ConsumerTime {
  double mean_us = 0;
  double p50_us = 0;
  double p99_us = 0;
};

/// Result of a bench.
struct BenchResult {
  Report report;
  Verdict verdict;
  /// Share of the time without work on the stream, 0 to 1; nullopt without a step.
  std::optional<double> device_idle;
  /// Mean time of a step on the device; nullopt without a step.
  std::optional<double> device_step_ms;
  /// Rate of the copies of micro-batches; nullopt without a trace.
  std::optional<CopyRate> copies;
  /// Share of the copies' time that overlaps with steps, 0 to 1; nullopt without a trace or a step.
  std::optional<double> copy_hidden;
  /// Time of the trainer's thread in `next` and in releasing batches.
  ConsumerTime consumer;
  /// Growth from the end of the warm-up to the end, in bytes. `rss_growth`: the process's own
  /// resident memory, including the trace; nullopt if the system does not tell.
  /// `device_memory_growth`: memory of the device; nullopt without any.
  std::optional<std::int64_t> rss_growth;
  std::optional<std::int64_t> device_memory_growth;
  /// Time of each measured batch, from one hand-out to the next.
  std::vector<double> batch_ms;
  /// Samples per second of each whole epoch; empty unless epochs were asked for.
  std::vector<double> epoch_rates;
  /// XXH3-64 of all batches in order, including the warm-up: indices, labels and pixels; or all
  /// fields where a batch has no images.
  std::optional<std::uint64_t> digest;
  /// Largest resident memory of the process without the dataset's mapped files, in bytes; nullopt
  /// if the system does not tell.
  std::optional<std::size_t> peak_rss_beyond_map;
  double cpu_seconds = 0;
  /// Share of the machine's processor time that the hypervisor gave to other machines, 0 to 1.
  double steal = 0;
  /// See `taken_by_others`.
  double disturbed = 0;
};

/// Makes the pipeline that a bench measures, or the same one on `device`.
Pipeline make_bench_pipeline(const BenchSettings& settings,
                             std::shared_ptr<Device> device = nullptr);

/// Returns a batch for steps without a loader, from a pipeline that has ended. The batch is empty
/// if the step does not use it. `stream` must outlive the batch.
Batch ready_batch(const BenchSettings& settings, TrainerStream& stream);

/// Runs warm-up and measurement.
BenchResult run_bench(const BenchSettings& settings);

/// Measures the loader's own time per batch: takes batches as fast as they come, without a step.
std::chrono::nanoseconds measure_batch_time(const BenchSettings& settings);

}  // namespace millrace::cli
