// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "diagnose/diagnose_run.h"
#include "diagnose/stall_verdict.h"
#include "measure/run_setup.h"

namespace millrace::cli {

/// All that `diagnose` has to say, however it is written.
struct DiagnoseRecord : RunSetup {
  DiagnoseSettings settings;
  DiagnoseResult result;
  StallAccount account;
  Verdict verdict;
};

/// Measures what the record's settings say, and judges it.
void diagnose(DiagnoseRecord& record);

/// Rows for people. Of an epoch's parts and the epoch: name, milliseconds per batch, noise, share
/// of an epoch, seconds per epoch, how sure that is.
std::vector<std::vector<std::string>> part_rows(const DiagnoseRecord& record);
/// Of the phases that were measured: name, mean and deviation in milliseconds per batch.
std::vector<std::vector<std::string>> phase_rows(const DiagnoseRecord& record);
/// Sentences on how it was measured.
std::vector<std::string> remarks(const DiagnoseRecord& record);
std::vector<std::string> warnings_of(const DiagnoseRecord& record);

/// For people: a table of an epoch's time, how it was measured, and the verdict in the last lines.
std::string to_text(const DiagnoseRecord& record);

/// For programs; README.md lists the keys.
std::string to_json(const DiagnoseRecord& record);

/// For people, as one file that needs no other.
std::string to_html(const DiagnoseRecord& record);

}  // namespace millrace::cli
