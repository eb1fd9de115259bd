// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "measure/bench_run.h"

namespace millrace::cli {

/// From a pipeline's start until the device begins the first step, medians.
struct FirstStep {
  /// The trainer computes on each micro-batch as soon as it is there.
  double parts_ms = 0;
  /// It waits for the whole batch.
  double whole_ms = 0;
};

/// What a bench is compared with, measured in the same run of the program.
struct BesideResult {
  /// 1 - the time of the same steps without a loader / that of the measured ones: about 0 to 1,
  /// below 0 if the difference is noise. Nullopt without a step.
  std::optional<double> idle_by_synthetic{};
  /// Of plain copies of the same size; nullopt if the pipeline's are not known.
  std::optional<double> plain_copy_bytes_per_second{};
  /// Nullopt without micro-batches.
  std::optional<FirstStep> first_step{};
};

/// Measures it after the bench. Throws what pipelines and devices throw.
BesideResult measure_beside(const BenchSettings& settings, const BenchResult& result);

}  // namespace millrace::cli
