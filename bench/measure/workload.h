// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/measure.h>

#include "measure/run_setup.h"

namespace millrace::cli {

/// A trainer's own workload as the commands measure theirs. A runtime is made where it has none.
/// Throws `Error` (`invalid_argument`) that names what is missing; of the dataset only if it is
/// needed.
BenchSettings settings_of(const measure::Workload& workload, bool needs_dataset = true);

/// What it is called in results.
RunSetup setup_of(const measure::Workload& workload, const BenchSettings& settings);

/// What a trainer's own step takes on a batch that is there already, a median; 0 without one.
std::chrono::nanoseconds measure_own_step(const BenchSettings& settings);

}  // namespace millrace::cli
