// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/bench_run.h"

namespace millrace::cli {

/// A median with the smallest and largest value it is of.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

/// The loader beside T, libjpeg-turbo's plain decode of whole images (`tjDecompress2`, flags 0), on
/// the same records with as many threads.
struct CeilingResult {
  /// The loader's samples per second / T's images per second.
  Spread rate_ratio;
  /// T's processor time per image / the loader's per sample, all of the process's threads counted.
  Spread cpu_ratio;
  double loader_samples_per_second = 0;
  double reference_images_per_second = 0;
};

/// Measures both in turn, in windows of 2 s, five each. Before each window the other's work has
/// ended and no made batch is left; samples are counted when they are made. The median of the five
/// ratios counts, so a slow spell of the machine does not.
CeilingResult measure_ceiling(const BenchSettings& settings);

}  // namespace millrace::cli
