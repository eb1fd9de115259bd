// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "measure/bench/bench_run.h"
#include "measure/bench/comparisons.h"

namespace millrace {
struct DecodeLimits;
struct Recipe;
}  // namespace millrace

namespace millrace::cli {

/// Compares the first samples of a run with exact samples of the same recipe. Skips bad records.
/// Returns nullopt if the recipe is exact.
std::optional<ReducedQuality> measure_reduced_quality(const BenchSettings& settings,
                                                      const Recipe& recipe,
                                                      const DecodeLimits& limits);

}  // namespace millrace::cli
