// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "measure/bench/student_t.h"
#include "measure/machine/process.h"
#include "measure/tune/tune_result.h"

namespace millrace::cli {

/// A step counts as fed if the device is idle for at most this share of the time.
constexpr double fed_idle = 0.02;
/// A setting is worse only if it loses more than this share.
constexpr double min_loss = 0.03;
/// A setting is as good as a better one if it loses at most this share.
constexpr double tolerance = 0.05;
/// Number of runs that suffice if they agree. To judge its idle time, a setting gets at most
/// `max_runs`, or `max_disturbed_runs` if some of its runs were disturbed.
constexpr std::size_t few_runs = 3;
constexpr std::size_t max_runs = 7;
constexpr std::size_t max_disturbed_runs = 10;
/// Minimum number of batches in a setting's runs for a judgement with confidence.
constexpr std::uint64_t fewest_judged_batches = 20;

/// The runs that count. Disturbed runs are set aside if at least `few_runs` others are left; else
/// all runs count.
std::vector<const TuneRun*> counting_runs(std::span<const TuneRun> runs);

TuneSummary summarise(std::span<const TuneRun> runs);

/// Yes if the upper bound of the mean idle share is at most `fed_idle`, from at least `few_runs`.
/// No if the lower bound is above `fed_idle`, from two or more undisturbed runs or from
/// `max_disturbed_runs`. Unsure with fewer batches than `fewest_judged_batches`.
Feeds feeds_step(const TuneSummary& summary);

/// Gain of one setting over another, as a share of the latter's mean. It is the mean of the
/// differences within each common round, so that drift of the machine cancels out. Rounds with a
/// disturbed run are left out if `few_runs` others remain.
struct Gain {
  double mean = 0;
  /// Standard error of the mean.
  double standard_error = 0;
  std::size_t rounds = 0;
  /// Whether both settings have `fewest_judged_batches` in these rounds.
  bool has_enough_batches = true;

  /// Bounds of the true gain, each with 99.5% confidence (Student's t), since many are compared.
  /// Infinite with fewer than two rounds or too few batches.
  double low() const { return mean - noise(); }
  double high() const { return mean + noise(); }

 private:
  double noise() const;
};
/// Gain in throughput. Rounds in which both fed the step are left out unless `counts_fed`.
Gain throughput_gain(std::span<const TuneRun> first, std::span<const TuneRun> second,
                     bool counts_fed = false);
/// Gain in 1 / (time to the first batch).
Gain start_gain(std::span<const TuneRun> first, std::span<const TuneRun> second);

}  // namespace millrace::cli
