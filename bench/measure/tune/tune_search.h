// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/tune/tune_result.h"

namespace millrace::cli {

/// Searches for the smallest setting that feeds the step, one variable at a time. Without a step,
/// or if no setting feeds it with certainty, it searches for the knee of throughput.
/// - workers (with an ample prefetch): 1, 2, 4 ... `max_workers`, then bisection. The knee is the
///   fewest workers that lose at most `tolerance` of the best throughput with certainty.
/// - the device's share of images, if asked for: the smallest of 0 to 1 in quarters that loses at
///   most `tolerance` of the best throughput with certainty, and that feeds the step if one of them
///   does. If steps come less often than alone, it also tries the shares with `max_workers`, and
///   then searches the fewest workers.
/// - prefetch: from 2 up, the smallest that still feeds the step, or that loses no more with
///   certainty.
/// - micro-batches: 1, 2, 4 ... while throughput or the time to the first batch gain with
///   certainty.
/// - batch size, if asked for: the largest within the limits, by doubling (or halving), then
///   bisection. Without limits, the smallest beyond which throughput does not gain.
/// Settings run in turn until they can be distinguished. Otherwise the best mean is chosen, or
/// for prefetch the larger value. A setting that feeds the step with certainty is never given up
/// for another.
TuneFindings search_settings(const TuneGoal& goal, const TuneProbe& probe);

}  // namespace millrace::cli
