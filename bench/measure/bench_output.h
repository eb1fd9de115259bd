// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/trace.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/beside.h"
#include "measure/ceiling.h"
#include "measure/reduced_quality.h"
#include "measure/run_setup.h"
#include "page/page.h"

namespace millrace::cli {

struct TracePicture;
class Figures;

/// All that `bench` has to say, however it is written.
struct BenchRecord : RunSetup {
  BenchSettings settings;
  BenchResult result;
  BesideResult beside{};
  /// Size of the files that the dataset is read from; nullopt without files or if one has no size.
  std::optional<std::uint64_t> dataset_bytes{};
  std::optional<CeilingResult> ceiling;
  /// nullopt if the recipe is exact.
  std::optional<ReducedQuality> reduced;
};

/// Measures what the record's settings say, and what it is compared with. Returns the trace of the
/// measured time, of all lanes or of those that are measured.
std::shared_ptr<const Trace> measure_bench(BenchRecord& record, bool traces_all);

/// Every figure of the result but those of its stages: what all forms below print.
Figures figures_of(const BenchRecord& record);
/// The figures of a stage of the road.
Figures figures_of(const StageReport& stage, const Report& report);
/// The options that the result was measured with.
Figures options_of(const BenchRecord& record);

std::vector<std::string> warnings_of(const BenchRecord& record);

/// "30.000 ms", "gemm:4096 (1.234 ms)", "none".
std::string step_text(const BenchRecord& record);

/// For people: a table, the last line says what bounds the run.
std::string to_text(const BenchRecord& record);

/// For programs; README.md lists the keys.
std::string to_json(const BenchRecord& record);

/// For people, as one file that needs no other: the verdict, what the time went into, and what
/// was measured on which machine.
std::string to_html(const BenchRecord& record, const Trace& trace);

/// Of the page: a bar for each stage of the road, which says how much of its time it was busy,
/// waited for input or for room for its output. `device_idle` (0 to 1) adds the device.
Section stage_section(const Report& report, std::optional<double> device_idle);

/// Of the page: how long calls of `next` waited for data, from the spans named "stall" of lanes
/// "trainer".
Section stall_section(const TracePicture& picture, const Report& report);

}  // namespace millrace::cli
