// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/measure.h>

#include <cstdint>

#include "measure/bench/run_setup.h"

namespace millrace::cli {

/// Converts a trainer's workload to the settings of the commands. Makes a runtime if the workload
/// has none. Throws `Error` (`invalid_argument`) with the missing member; the dataset may be
/// missing unless `needs_dataset`.
BenchSettings settings_of(const measure::Workload& workload, bool needs_dataset = true);

/// Returns `Transform::fitted_to`, or the transform itself if that is null. Throws `Error`
/// (`invalid_argument`) for a null transform.
std::shared_ptr<const Transform> fitted(const std::shared_ptr<const Transform>& transform,
                                        const Dataset& dataset);

/// Checks of the options of a measurement. They throw `Error` (`invalid_argument`) with name, value
/// and range. A count is at most 2^40.
void check_option(const char* name, double value, double low, double high);
void check_count(const char* name, std::uint64_t value, std::uint64_t low = 0);
void check_seconds(const char* name, double seconds);

/// The workload's names in results.
RunSetup setup_of(const measure::Workload& workload, const BenchSettings& settings);

/// Median time of a trainer's own step on a batch that is ready; 0 without a step.
std::chrono::nanoseconds measure_user_step(const BenchSettings& settings);

}  // namespace millrace::cli
