// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "tune/tune_result.h"

namespace millrace::cli {

// The sentences that say why a setting was chosen.

/// "1 worker", "2 workers"
std::string plural(std::size_t count, const char* what);
/// "p99 20 ms and 512 MB"
std::string limits_text(const TuneGoal& goal);

/// "workers", "prefetch", "micro_batches", "batch_size"
const char* to_string(TuneVariable variable);
/// The setting's value of the variable.
std::size_t value_of(const TuneSetting& setting, TuneVariable variable);

/// That the time was over before all was measured; `chosen` is what it led to.
std::string not_measured_text(TuneVariable variable, const TuneSetting& chosen);
/// Fills in the verdict, the reasons of the phases that have none yet, and `why`.
void say_why(const TuneGoal& goal, TuneFindings& findings);

}  // namespace millrace::cli
