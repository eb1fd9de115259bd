// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/bench/bench_run.h"
#include "measure/machine/machine.h"

namespace millrace::cli {

class Figures;

/// A measurement's setup in the words of the command line, and its machine.
struct RunSetup {
  std::string dataset;
  /// Whether the dataset's files are mapped; nullopt = unknown.
  std::optional<bool> map{};
  std::string recipe_name;
  std::string device = "host";
  /// As given, such as "float16:nhwc"; empty = no conversion.
  std::string convert{};
  /// Whether the step's time was measured (`--step-ms auto`).
  bool step_is_auto = false;
  Machine machine;
};

/// The first line of a result: "train.lmdb: 500 records, recipe train, 2 workers ...".
std::string setup_text(const RunSetup& setup, const BenchSettings& settings, std::uint64_t records);

/// "30.000 ms", "gemm:4096 (1.234 ms)", "the trainer's own (1.234 ms)", "none". `device_step_ms` is
/// the measured time of a matrix product or of a trainer's own step.
std::string step_text(const RunSetup& setup, const BenchSettings& settings,
                      double device_step_ms = 0);

/// Warnings of a result in any format, a sentence each: about the settings, from the report, and
/// about other programs that took the share `disturbed` (0 to 1) of the processors.
std::vector<std::string> warnings_of(const BenchSettings& settings, const Report& report,
                                     double disturbed);

/// The options that all commands with a pipeline print.
Figures setup_figures(const RunSetup& setup, const BenchSettings& settings, std::uint64_t records);

}  // namespace millrace::cli
