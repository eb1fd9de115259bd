// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "measure/bench/bench_run.h"
#include "measure/tune/tune_result.h"

namespace millrace::cli {

/// Tunes on this machine. `settings` has dataset, transform and seed, `goal` the rest. `on_run`, if
/// set, is called before each run of a setting. Fills in `goal` and `findings` of the result, and
/// the facts about dataset, recipe and machine.
TuneResult run_tune(const BenchSettings& settings, const TuneGoal& goal,
                    const std::function<void(const TuneSetting&)>& on_run);

}  // namespace millrace::cli
