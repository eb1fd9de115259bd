// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "measure/bench/run_setup.h"
#include "measure/diagnose/diagnose_run.h"
#include "measure/diagnose/stall_verdict.h"

namespace millrace::cli {

/// All contents of a `diagnose` result, in any format.
struct DiagnoseRecord : RunSetup {
  DiagnoseSettings settings;
  DiagnoseResult result;
  StallAccount account;
  Verdict verdict;
};

/// Measures with the record's settings, and fills in results and verdict.
void diagnose(DiagnoseRecord& record);

/// Rows for people. A row for each part of an epoch, and one for the epoch: name, milliseconds per
/// batch, noise, share of the epoch, seconds per epoch, certainty.
std::vector<std::vector<std::string>> part_rows(const DiagnoseRecord& record);
/// Rows of the measured phases: name, mean and deviation in milliseconds per batch.
std::vector<std::vector<std::string>> phase_rows(const DiagnoseRecord& record);
/// Sentences on the conditions of the measurement.
std::vector<std::string> remarks(const DiagnoseRecord& record);
std::vector<std::string> warnings_of(const DiagnoseRecord& record);

/// Formats as text: a table of an epoch's time, the conditions, and the verdict in the last lines.
std::string to_text(const DiagnoseRecord& record);

/// Formats as JSON; README.md lists the keys.
std::string to_json(const DiagnoseRecord& record);

/// Formats as a self-contained HTML page.
std::string to_html(const DiagnoseRecord& record);

}  // namespace millrace::cli
