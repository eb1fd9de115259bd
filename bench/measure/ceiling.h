// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/bench_run.h"
#include "measure/spread.h"

namespace millrace::cli {

/// The loader compared with T, libjpeg-turbo's plain decode of whole images (`tjDecompress2`, flags
/// 0), on the same records and number of threads.
struct CeilingResult {
  /// Samples per second of the loader / images per second of T.
  Spread rate_ratio;
  /// Processor time of T's own threads per image / processor time of all other threads per sample.
  Spread cpu_ratio;
  double loader_samples_per_second = 0;
  double reference_images_per_second = 0;
  std::size_t pairs = 0;
};

/// Measures pairs of short windows, one of the loader and one of T, over the same part of the
/// order. A random one of the two runs first. Before each window the other's work has ended and all
/// made batches are taken. A sample counts when it is made. There are at least 20 pairs, and more
/// until both intervals are within 2% of their medians or `most_seconds` are over. The result is
/// the median of the pairs' ratios, which slow periods of the machine do not change. T reads
/// `unchecked`, the same dataset opened without checksums.
CeilingResult measure_ceiling(const BenchSettings& settings, const Dataset& unchecked,
                              double most_seconds);

}  // namespace millrace::cli
