// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "measure/bench/bench_run.h"
#include "measure/device/copy_rate.h"

namespace millrace::cli {

/// Median times from a pipeline's start until the device begins the first step.
struct FirstStep {
  /// The trainer computes on each micro-batch as soon as it arrives.
  double parts_ms = 0;
  /// The trainer waits for the whole batch.
  double whole_ms = 0;
};

/// Rates of plain copies with the pipeline's size; nullopt = not measured.
struct PlainCopyRates {
  /// While the workers are idle.
  std::optional<CopyRates> idle{};
  /// While the workers make batches that are not copied.
  std::optional<CopyRates> busy{};
  /// While the device runs steps, as during a pipeline's copies.
  std::optional<CopyRates> under_steps{};
};

/// Figures to compare a bench with, measured in the same run of the program.
struct BaselineResult {
  /// 1 - (time of the same steps without a loader) / (time of the measured steps). About 0 to 1;
  /// below 0 if the difference is noise. Nullopt without a step.
  std::optional<double> idle_by_synthetic{};
  /// Idle share of the same steps without a loader, by the same events, 0 to 1. Nullopt without a
  /// step, or if the device cannot measure times.
  std::optional<double> idle_floor{};
  /// From pinned memory as in a pipeline's slots. `busy` and `under_steps` are measured only if the
  /// device also has memory allocated by the driver.
  PlainCopyRates plain_copies{};
  /// From pinned memory that the driver allocates.
  PlainCopyRates driver_copies{};
  /// Nullopt without micro-batches.
  std::optional<FirstStep> first_step{};
};

/// Measures these figures after the bench. Throws the errors of pipelines and devices.
BaselineResult measure_baselines(const BenchSettings& settings, const BenchResult& result);

}  // namespace millrace::cli
