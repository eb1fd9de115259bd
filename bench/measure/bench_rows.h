// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "measure/bench_output.h"

namespace millrace::cli {

/// "30.000 ms", "gemm:4096 (1.234 ms)", "none".
std::string step_text(const BenchRecord& record);

/// What the pipeline's copies reached of what plain ones do, 0 to 1.
std::optional<double> copies_of_plain(const BenchRecord& record);

/// The rows about the device and the trainer's thread, as far as they apply: name and value.
std::vector<std::pair<std::string, std::string>> device_rows(const BenchRecord& record);

}  // namespace millrace::cli
