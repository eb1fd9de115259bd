// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "tune/tune_result.h"

namespace millrace::cli {

/// A step counts as fed if the device is idle for no more than this share of the time.
constexpr double fed_idle = 0.02;
/// A run counts as disturbed if other programs took more than this share of the processors.
constexpr double disturbed_share = 0.03;
/// A gain below this share is noise, however often it was measured.
constexpr double least_gain = 0.02;
/// So many runs are enough if they agree. No setting gets more than the second number for one
/// question, or more than the third if some of its runs were disturbed.
constexpr std::size_t few_runs = 3;
constexpr std::size_t most_runs = 7;
constexpr std::size_t most_disturbed_runs = 10;

/// The one-sided quantile of Student's t at a confidence such as 0.95. Degrees of freedom are
/// rounded down to a whole number from 1 up, which errs on the side of caution.
double student_t(double degrees_of_freedom, double confidence);

/// The runs that count. Disturbed runs are set aside as long as at least `few_runs` others are
/// left; on a machine that is never quiet all count. Runs that began before `since_seconds` are
/// left out.
std::vector<const TuneRun*> counting_runs(std::span<const TuneRun> runs, double since_seconds = 0);

/// Runs that began before `since_seconds` are left out.
TuneSummary summarise(std::span<const TuneRun> runs, double since_seconds = 0);

/// Yes if the upper bound of the mean idle share is at most `fed_idle`, by at least `few_runs`
/// runs. No if its lower bound is above that, by at least two runs that were not disturbed or by
/// `most_runs`.
Feeds feeds_step(const TuneSummary& summary);

/// Whether one mean is above another one beyond noise.
struct Comparison {
  /// The first is higher, with 99% confidence (Welch's t-test) and by at least `least_gain`. Many
  /// pairs are compared, so that 95% would find gains by chance.
  bool higher = false;
  /// More runs would hardly change that: the first is higher, or it is, with 95% confidence, not
  /// higher by more than 1.5 x `least_gain`.
  bool certain = false;
};
Comparison compare(Mean first, std::size_t first_runs, Mean second, std::size_t second_runs);
/// Compares throughput.
Comparison compare_rates(const TuneSummary& first, const TuneSummary& second);

/// The runs of all settings so far, and more of them until what is asked is clear, as long as there
/// is time. A point is a setting with its runs, named by its index.
class Measurements {
 public:
  /// Runs are planned to take `run_seconds` each.
  Measurements(const TuneProbe& probe, double run_seconds)
      : probe_(probe), run_seconds_(run_seconds) {}

  double run_seconds() const { return run_seconds_; }
  /// Begins with a new variable, which may take until `deadline` (seconds since the tune began).
  void begin(double deadline);
  /// Whether a run was refused since `begin` because there was no time for it.
  bool refused() const { return refused_; }

  /// The point of a setting, which is added if it is new.
  std::size_t point(const TuneSetting& setting);
  const std::vector<TunePoint>& points() const { return points_; }
  const TuneSetting& setting(std::size_t point) const { return points_[point].setting; }
  /// Of the runs since `begin`.
  TuneSummary summary(std::size_t point) const { return summarise(points_[point].runs, since_); }
  /// Those of the points that have runs, by their value of the variable.
  std::vector<std::size_t> ascending(std::vector<std::size_t> points, TuneVariable variable) const;

  /// Runs them in turn until each has so many runs since `begin`. Returns false if the time did not
  /// suffice; the very first run is always made.
  bool run_in_turn(const std::vector<std::size_t>& points, std::size_t runs);
  /// Whether it feeds the step by all its runs. Runs it until that is clear, or it has its most
  /// runs, or the time is over.
  Feeds judge(std::size_t point);
  /// Whether the first one's throughput is higher beyond noise. Runs both in turn until that is
  /// clear, or they have their most runs, or the time is over.
  bool beats(std::size_t first, std::size_t second);

  /// All points with the summaries of all their runs, moved out.
  std::vector<TunePoint> take();

 private:
  bool run(std::size_t point);

  const TuneProbe& probe_;
  double run_seconds_;
  /// What the last run took in all; nullopt before the first one.
  std::optional<double> cost_;
  double since_ = 0;
  double deadline_ = 0;
  bool refused_ = false;
  std::vector<TunePoint> points_;
};

}  // namespace millrace::cli
