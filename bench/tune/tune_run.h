// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "measure/bench_run.h"
#include "tune/tune_result.h"

namespace millrace::cli {

/// Tunes on this machine: `settings` has dataset, transform and seed, `goal` the rest. `on_run` is
/// told of each setting that is about to run, if it is given. Fills in `goal` and `findings` of the
/// result, and what is known of dataset, recipe and machine.
TuneResult run_tune(const BenchSettings& settings, const TuneGoal& goal,
                    const std::function<void(const TuneSetting&)>& on_run);

}  // namespace millrace::cli
