// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tune/tune_result.h"

namespace millrace::cli {

/// For people: a table per variable, a plot of throughput over workers with the fit, what could not
/// be measured; the last line is the verdict.
std::string to_text(const TuneResult& result);

/// For programs: every run of every setting, the fit, the choice and why, the machine.
std::string to_json(const TuneResult& result);

/// "feeds_step", "nothing_feeds", "no_step", "nothing_fits"
const char* to_string(TuneOutcome outcome);
/// "no_step", "yes", "no", "unsure"
const char* to_string(Feeds feeds);

}  // namespace millrace::cli
