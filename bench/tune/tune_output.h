// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/options_file.h>

#include <string>
#include <vector>

#include "tune/tune_result.h"

namespace millrace::cli {

/// A table for people of the settings that were measured for a variable: a head, then a row each,
/// which begins with the variable's value.
std::vector<std::vector<std::string>> table_of(const TuneFindings& findings,
                                               const TunePhase& phase);

/// For people: a table per variable, a plot of throughput over workers, the fit, what could not
/// be measured; the last line is the verdict.
std::string to_text(const TuneResult& result);

/// The chosen setting, why, and on which machine: an options file.
SavedOptions saved_options(const TuneResult& result);

/// For programs: every run of every setting, the fit, the choice and why, the machine.
std::string to_json(const TuneResult& result);

}  // namespace millrace::cli
