// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/trace.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/bench/baseline_runs.h"
#include "measure/bench/comparisons.h"
#include "measure/bench/run_setup.h"
#include "measure/page/page.h"

namespace millrace::cli {

struct TracePicture;
class Figures;

/// All contents of a `bench` result, in any format.
struct BenchRecord : RunSetup {
  BenchSettings settings;
  BenchResult result;
  BaselineResult baselines{};
  /// Size of the dataset's files; nullopt without files, or if the size of one is unknown.
  std::optional<std::uint64_t> dataset_bytes{};
  std::optional<CeilingResult> ceiling;
  /// nullopt if the recipe is exact.
  std::optional<ReducedQuality> reduced;
};

/// Measures the result with the record's settings, and the figures for comparison. Returns the
/// trace of the measured time, with all lanes or only those that the measurement needs.
std::shared_ptr<const Trace> measure_bench(BenchRecord& record, bool traces_all);

/// All figures of the result except those of its stages; every format below prints them.
Figures figures_of(const BenchRecord& record);
/// Figures of a pipeline stage.
Figures figures_of(const StageReport& stage, const Report& report);
/// The options that the result was measured with.
Figures options_of(const BenchRecord& record);

std::vector<std::string> warnings_of(const BenchRecord& record);

/// "30.000 ms", "gemm:4096 (1.234 ms)", "none".
std::string step_text(const BenchRecord& record);

/// Formats as text: a table; the last line is the verdict.
std::string to_text(const BenchRecord& record);

/// Formats as JSON; README.md lists the keys.
std::string to_json(const BenchRecord& record);

/// Formats as a self-contained HTML page: the verdict, the stages' time, and the measured setup and
/// machine.
std::string to_html(const BenchRecord& record, const Trace& trace);

/// Section of the page: a bar for each stage with its time busy, waiting for input and waiting for
/// space for its output. `device_idle` (0 to 1) adds the device.
Section stage_section(const Report& report, std::optional<double> device_idle);

/// Section of the page: how long calls of `next` waited for data, from the spans "stall" in the
/// lanes "trainer".
Section stall_section(const TracePicture& picture, const Report& report);

}  // namespace millrace::cli
