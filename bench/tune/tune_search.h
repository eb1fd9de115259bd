// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tune/tune_result.h"

namespace millrace::cli {

/// Searches for the smallest setting that feeds the step, one variable at a time, or for the knee
/// of throughput if there is no step or nothing feeds it:
/// - workers (with an ample prefetch): 1, 2, 4 ... `max_workers`, then bisecting. A step is fed if
///   the mean idle share of at least three runs is at most 2% with 95% confidence; settings that
///   are unsure get up to seven runs. The knee is the fewest workers with 95% of the best
///   throughput, or fewer if the difference is within noise. The fit of the scalability law says
///   where to look.
/// - prefetch: the smallest with no loss beyond noise (a step that was fed still is);
/// - micro-batches: 1, 2, 4 ... while throughput, idle time or the time to the first batch gain
///   beyond noise;
/// - batch size, if asked for: the largest within the limits, by doubling (or halving), then
///   bisecting; without limits the smallest beyond which throughput does not gain.
/// Settings that are compared run in turn, so that a slow spell of the machine strikes all of them.
/// The lengths of the runs follow from the budget; the findings say what it did not allow.
TuneFindings search_settings(const TuneGoal& goal, const TuneProbe& probe);

}  // namespace millrace::cli
