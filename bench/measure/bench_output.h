// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "machine/machine.h"
#include "measure/bench_run.h"
#include "measure/beside.h"
#include "measure/ceiling.h"

namespace millrace::cli {

/// All that `bench` has to say, however it is written.
struct BenchRecord {
  std::string dataset;
  std::string recipe_name;
  std::string device = "host";
  /// As given: "float16:nhwc"; empty = images stay as they are.
  std::string convert{};
  BenchSettings settings;
  /// Whether the step's time was measured (`--step-ms auto`).
  bool step_is_auto = false;
  BenchResult result;
  BesideResult beside{};
  std::optional<CeilingResult> ceiling;
  Machine machine;
};

/// For people: a table, the last line says what bounds the run.
std::string to_text(const BenchRecord& record);

/// For programs; README.md lists the keys.
std::string to_json(const BenchRecord& record);

nlohmann::ordered_json machine_json(const Machine& machine);

}  // namespace millrace::cli
