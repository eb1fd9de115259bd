// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "measure/bench_run.h"
#include "measure/device/copy_rate.h"

namespace millrace::cli {

/// From a pipeline's start until the device begins the first step, medians.
struct FirstStep {
  /// The trainer computes on each micro-batch as soon as it is there.
  double parts_ms = 0;
  /// It waits for the whole batch.
  double whole_ms = 0;
};

/// Rates of plain copies of the pipeline's size; nullopt where they were not measured.
struct PlainCopyRates {
  /// While the workers have nothing to do.
  std::optional<CopyRates> idle{};
  /// While they make batches, which nobody copies.
  std::optional<CopyRates> busy{};
  /// While the device has steps to do, as it has under a pipeline's copies.
  std::optional<CopyRates> under_steps{};
};

/// What a bench is compared with, measured in the same run of the program.
struct BesideResult {
  /// 1 - the time of the same steps without a loader / that of the measured ones: about 0 to 1,
  /// below 0 if the difference is noise. Nullopt without a step.
  std::optional<double> idle_by_synthetic{};
  /// Idle share of the same steps without a loader, by the same events, 0 to 1. Nullopt without a
  /// step, or if the device tells no times.
  std::optional<double> idle_floor{};
  /// From pinned memory as a pipeline's slots have it. The others than `idle` are measured
  /// where there is the other kind of memory as well.
  PlainCopyRates plain_copies{};
  /// From pinned memory that the driver itself allocates.
  PlainCopyRates driver_copies{};
  /// Nullopt without micro-batches.
  std::optional<FirstStep> first_step{};
};

/// Measures it after the bench. Throws what pipelines and devices throw.
BesideResult measure_beside(const BenchSettings& settings, const BenchResult& result);

}  // namespace millrace::cli
