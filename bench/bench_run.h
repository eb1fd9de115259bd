// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/pipeline.h>
#include <millrace/recipe.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace millrace::cli {

/// What is measured: a pipeline over a dataset, and the step it feeds.
struct BenchSettings {
  std::shared_ptr<const Dataset> dataset;
  Recipe recipe;
  std::shared_ptr<Runtime> runtime;
  std::size_t batch_size = 64;
  std::size_t prefetch = 4;
  std::size_t micro_batches = 1;
  std::uint64_t seed = 0;
  /// Time of a step on the device; 0 = none.
  std::chrono::nanoseconds step{0};
  /// Batches before measuring begins.
  std::uint64_t warmup = 0;
  /// How long to measure: so many batches, or where that is 0 so long.
  std::uint64_t batches = 0;
  std::chrono::nanoseconds duration{0};
  bool digest = false;
  /// Where every span of the measured time goes, with a group "trainer" that has a lane of the steps; none = nothing is traced.
  std::shared_ptr<Trace> trace{};
  /// How fast batches are copied to the device at most, in bytes per second, to imitate a bus; 0 = as fast as the memory.
  double copy_bytes_per_second = 0;
};

/// What came out.
struct BenchResult {
  Report report;
  Verdict verdict;
  /// Share of time the stream had nothing to run, 0 to 1; none without a step.
  std::optional<double> device_idle;
  /// Time of each measured batch: from one handed out to the next.
  std::vector<double> batch_ms;
  /// XXH3-64 of all batches from the first on, in order: indices, labels and pixels.
  std::optional<std::uint64_t> digest;
  /// Largest resident memory of the process beyond the dataset's mapped file, in bytes.
  std::size_t peak_rss_beyond_map = 0;
  double cpu_seconds = 0;
  /// Share of the machine's processor time that the hypervisor gave to others, 0 to 1.
  double steal = 0;
};

/// The pipeline that a bench measures, on a host device that copies.
Pipeline make_bench_pipeline(const BenchSettings& settings);
/// The same with another transform than the recipe's.
Pipeline make_bench_pipeline(const BenchSettings& settings, std::shared_ptr<const Transform> transform);

/// Runs warm-up and measurement.
BenchResult run_bench(const BenchSettings& settings);

/// The loader's own time per batch: batches taken as fast as they come, without a step.
std::chrono::nanoseconds measure_batch_time(const BenchSettings& settings);

}  // namespace millrace::cli
