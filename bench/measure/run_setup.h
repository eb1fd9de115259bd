// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "measure/bench_run.h"

namespace millrace::cli {

class Figures;

/// What a command was told to measure, in the words of the command line, and on which machine.
struct RunSetup {
  std::string dataset;
  /// Whether its files are mapped; nullopt if that is not known.
  std::optional<bool> map{};
  std::string recipe_name;
  std::string device = "host";
  /// As given: "float16:nhwc"; empty if the images stay as they are.
  std::string convert{};
  /// Whether the step's time was measured (`--step-ms auto`).
  bool step_is_auto = false;
  Machine machine;
};

/// "train.lmdb: 500 records, recipe train, 2 workers ...": the first line of a result.
std::string setup_text(const RunSetup& setup, const BenchSettings& settings, std::uint64_t records);

/// "30.000 ms", "gemm:4096 (1.234 ms)", "the trainer's own (1.234 ms)", "none"; `device_step_ms` is
/// what a product of matrices or a trainer's own took.
std::string step_text(const RunSetup& setup, const BenchSettings& settings,
                      double device_step_ms = 0);

/// What is not as it should be, a sentence each: with the settings, by the report, and that other
/// programs took the share `disturbed` (0 to 1) of the processors. All forms of a result have them.
std::vector<std::string> warnings_of(const BenchSettings& settings, const Report& report,
                                     double disturbed);

/// The options that all commands with a pipeline have.
Figures setup_figures(const RunSetup& setup, const BenchSettings& settings, std::uint64_t records);

}  // namespace millrace::cli
