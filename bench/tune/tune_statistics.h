// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "measure/process.h"
#include "measure/student_t.h"
#include "tune/tune_result.h"

namespace millrace::cli {

/// A step counts as fed if the device is idle for no more than this share of the time.
constexpr double fed_idle = 0.02;
/// A setting is worse only if it loses more than this share.
constexpr double least_loss = 0.03;
/// A setting is as good as a better one if it loses no more than this share.
constexpr double tolerance = 0.05;
/// So many runs are enough if they agree. To be judged by its idle time no setting gets more than
/// the second number, or more than the third if some of its runs were disturbed.
constexpr std::size_t few_runs = 3;
constexpr std::size_t most_runs = 7;
constexpr std::size_t most_disturbed_runs = 10;
/// By fewer batches of a setting, in all runs that count, nothing is said with confidence.
constexpr std::uint64_t fewest_judged_batches = 20;

/// The runs that count. Disturbed runs are set aside as long as at least `few_runs` others are
/// left; on a machine that is never quiet all count.
std::vector<const TuneRun*> counting_runs(std::span<const TuneRun> runs);

TuneSummary summarise(std::span<const TuneRun> runs);

/// Yes if the upper bound of the mean idle share is at most `fed_idle`, by at least `few_runs`
/// runs. No if its lower bound is above that, by at least two runs that were not disturbed or by
/// `most_disturbed_runs`. Unsure by fewer batches than `fewest_judged_batches`.
Feeds feeds_step(const TuneSummary& summary);

/// How much higher one setting's figure is than another's, as a share of the latter's mean: the
/// mean of the differences within each round that both ran in, so that drift of the machine cancels
/// out. Rounds with a disturbed run are left out as long as `few_runs` others are left.
struct Gain {
  double mean = 0;
  /// Of the mean.
  double standard_error = 0;
  std::size_t rounds = 0;
  /// Whether both have `fewest_judged_batches` in these rounds.
  bool has_enough_batches = true;

  /// The bounds of the true gain, each with 99.5% confidence (Student's t), for many are compared;
  /// infinite by fewer than two rounds, or too few batches.
  double low() const { return mean - noise(); }
  double high() const { return mean + noise(); }

 private:
  double noise() const;
};
/// Rounds in which both fed the step say nothing of throughput and are left out.
Gain throughput_gain(std::span<const TuneRun> first, std::span<const TuneRun> second);
/// How much sooner the first batch comes: the gain of 1 / time.
Gain start_gain(std::span<const TuneRun> first, std::span<const TuneRun> second);

}  // namespace millrace::cli
