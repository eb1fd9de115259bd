// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tune/tune_result.h"

namespace millrace::cli {

/// Searches for the smallest setting that feeds the step, one variable at a time, or for the knee
/// of throughput if there is no step or nothing feeds it surely:
/// - workers (with an ample prefetch): 1, 2, 4 ... `max_workers`, then bisecting. The knee is the
///   fewest that surely lose no more than `tolerance` of the best throughput.
/// - prefetch: the smallest from 2 up that still feeds the step, or that surely loses no more;
/// - micro-batches: 1, 2, 4 ... while throughput or the time to the first batch surely gain;
/// - batch size, if asked for: the largest within the limits, by doubling (or halving), then
///   bisecting; without limits the smallest beyond which throughput does not gain.
/// Settings run in turn until they can be told apart. If they cannot, the best mean is taken, of
/// prefetches the larger one. A setting that surely feeds the step is never given up for another.
TuneFindings search_settings(const TuneGoal& goal, const TuneProbe& probe);

}  // namespace millrace::cli
