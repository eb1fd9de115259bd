// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/measure.h>

#include "measure/bench/run_setup.h"

namespace millrace::cli {

/// Converts a trainer's workload to the settings of the commands. Makes a runtime if the workload
/// has none. Throws `Error` (`invalid_argument`) with the missing member; the dataset may be
/// missing unless `needs_dataset`.
BenchSettings settings_of(const measure::Workload& workload, bool needs_dataset = true);

/// The workload's names in results.
RunSetup setup_of(const measure::Workload& workload, const BenchSettings& settings);

/// Median time of a trainer's own step on a batch that is already there; 0 without a step.
std::chrono::nanoseconds measure_user_step(const BenchSettings& settings);

}  // namespace millrace::cli
