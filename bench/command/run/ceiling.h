// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/bench/bench_run.h"
#include "measure/bench/comparisons.h"

namespace millrace::cli {

/// Checks up to 64 records, spread over the dataset. Throws `Error` (`invalid_argument`) if one has
/// an image of a kind that T does not decode. The message names the record and the kind. Ignores
/// records that cannot be read: the run reports them.
void check_ceiling_images(const Dataset& dataset);

/// Measures pairs of short windows, one of the loader and one of T, over the same part of the
/// order. A random one of the two runs first. Before each window the other's work has ended and all
/// made batches are taken. A sample counts when it is made. There are at least 20 pairs, and more
/// until both intervals are within 2% of their medians or `max_seconds` are over. The result is
/// the median of the pairs' ratios, which slow periods of the machine do not change. T reads
/// `unchecked`, the same dataset opened without checksums.
CeilingResult measure_ceiling(const BenchSettings& settings, const Dataset& unchecked,
                              double max_seconds);

}  // namespace millrace::cli
