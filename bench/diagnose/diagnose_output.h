// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "diagnose/diagnose_run.h"
#include "diagnose/stall_verdict.h"
#include "machine/machine.h"

namespace millrace::cli {

/// All that `diagnose` has to say, however it is written.
struct DiagnoseRecord {
  std::string recipe_name;
  std::string device = "host";
  DiagnoseSettings settings;
  /// Whether the step's time was measured (`--step-ms auto`).
  bool step_is_auto = false;
  DiagnoseResult result;
  StallAccount account;
  Verdict verdict;
  Machine machine;
};

/// For people: a table of an epoch's time, how it was measured, and the verdict in the last lines.
std::string to_text(const DiagnoseRecord& record);

/// For programs; README.md lists the keys.
std::string to_json(const DiagnoseRecord& record);

}  // namespace millrace::cli
