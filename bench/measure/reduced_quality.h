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

/// How far samples of a recipe of reduced resolution are from those of the same recipe exactly.
struct ReducedQuality {
  std::uint64_t compared = 0;
  /// Those with another pixel than the exact one; the rest were not reduced.
  std::uint64_t differing = 0;
  /// Peak signal to noise ratio of 8-bit values in dB, of all that differ and of the worst of them.
  double psnr_db = 0;
  double lowest_psnr_db = 0;
};

/// Compares the first samples of a run of the recipe. Bad records are left out. nullopt if the
/// recipe is exact.
std::optional<ReducedQuality> measure_reduced_quality(const BenchSettings& settings,
                                                      const Recipe& recipe,
                                                      const DecodeLimits& limits);

}  // namespace millrace::cli
