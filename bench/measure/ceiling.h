// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/bench_run.h"
#include "measure/spread.h"

namespace millrace::cli {

/// The loader beside T, libjpeg-turbo's plain decode of whole images (`tjDecompress2`, flags 0), on
/// the same records with as many threads.
struct CeilingResult {
  /// The loader's samples per second / T's images per second.
  Spread rate_ratio;
  /// T's processor time per image, of its own threads / the loader's per sample, of all others.
  Spread cpu_ratio;
  double loader_samples_per_second = 0;
  double reference_images_per_second = 0;
  std::size_t pairs = 0;
};

/// Measures pairs of short windows, one of the loader and one of T over the same stretch of the
/// order, at random one or the other first. Before each window the other's work has ended and no
/// made batch is left; samples are counted when they are made. There are at least 20 pairs, and
/// more until both intervals are within 2% of their medians or `most_seconds` are over. The medians
/// of the pairs' ratios count, so slow spells of the machine do not. T reads `unchecked`, the
/// dataset once more without comparing checksums.
CeilingResult measure_ceiling(const BenchSettings& settings, const Dataset& unchecked,
                              double most_seconds);

}  // namespace millrace::cli
