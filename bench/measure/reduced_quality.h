// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "measure/bench_run.h"

namespace millrace {
struct DecodeLimits;
struct Recipe;
}  // namespace millrace

namespace millrace::cli {

/// Difference between samples at reduced resolution and exact samples of the same recipe.
struct ReducedQuality {
  std::uint64_t compared = 0;
  /// Samples that differ from the exact ones; the others were not reduced.
  std::uint64_t differing = 0;
  /// Peak signal-to-noise ratio of 8-bit values in dB: over all differing samples, and of the worst
  /// one.
  double psnr_db = 0;
  double lowest_psnr_db = 0;
};

/// Compares the first samples of a run of the recipe. Skips bad records. Nullopt if the recipe is
/// exact.
std::optional<ReducedQuality> measure_reduced_quality(const BenchSettings& settings,
                                                      const Recipe& recipe,
                                                      const DecodeLimits& limits);

}  // namespace millrace::cli
