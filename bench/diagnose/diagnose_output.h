// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

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

/// For people: a table of an epoch's time, how it was measured, and the verdict in the last lines.
std::string to_text(const DiagnoseRecord& record);

/// For programs; README.md lists the keys.
std::string to_json(const DiagnoseRecord& record);

}  // namespace millrace::cli
