// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/options_file.h>

#include <string>
#include <vector>

#include "measure/tune/tune_result.h"

namespace millrace::cli {

/// A table for people of the settings that were measured for a variable: a head, then a row each. A
/// row begins with the variable's value.
std::vector<std::vector<std::string>> table_of(const TuneFindings& findings,
                                               const TunePhase& phase);

/// Formats as text: a table per variable, a plot of throughput over workers, the fit, and what
/// could not be measured. The last line is the verdict.
std::string to_text(const TuneResult& result);

/// The chosen setting, the reasons and the machine, as an options file.
SavedOptions saved_options(const TuneResult& result);

/// Formats as JSON: every run of every setting, the fit, the choice and its reasons, the machine.
std::string to_json(const TuneResult& result);

}  // namespace millrace::cli
