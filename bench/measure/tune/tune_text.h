// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "measure/tune/tune_result.h"

namespace millrace::cli {

// Texts of a tune, and the sentences with the reasons for a setting.

/// "workers", "prefetch", "micro_batches", "batch_size", "device_share"
const char* to_string(TuneVariable variable);
/// "feeds_step", "nothing_feeds", "no_step", "nothing_fits"
const char* to_string(TuneOutcome outcome);
/// "no_step", "yes", "no", "unsure"
const char* to_string(Feeds feeds);

/// "2104 ± 12"
std::string mean_text(Mean value, int digits = 0);
/// Value of a variable in a setting: "64", or of `device_share` "0.5".
std::string value_text(const TuneSetting& setting, TuneVariable variable);
/// "2 workers, prefetch 4, 1 micro-batch, batches of 64", and ", device_share 0.5" if it is set.
std::string setting_text(const TuneSetting& setting);
/// "p99 20 ms and 512 MB"; empty without limits.
std::string limits_text(const TuneGoal& goal);
/// The result of fitting the worker counts, or that the fit does not hold.
std::string law_text(const UslFit& fit);

/// Fills in the verdict, the warnings, the missing reasons of phases, and `why`.
void say_why(const TuneGoal& goal, TuneFindings& findings);

}  // namespace millrace::cli
