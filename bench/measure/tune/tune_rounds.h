// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "measure/tune/tune_statistics.h"

namespace millrace::cli {

/// Stores the runs of all settings, and makes further runs while time remains. A point is a setting
/// with its runs, identified by its index.
class TuneRounds {
 public:
  using Points = std::vector<std::size_t>;

  /// Each run is planned to take `run_seconds`.
  TuneRounds(const TuneProbe& probe, double run_seconds)
      : probe_(probe), run_seconds_(run_seconds) {}

  double run_seconds() const { return run_seconds_; }
  /// Begins a new variable with a deadline, in seconds since the tune began. `counts_fed`: see
  /// `throughput_gain`.
  void begin(double deadline, bool counts_fed = false) {
    deadline_ = deadline;
    counts_fed_ = counts_fed;
    ran_out_of_time_ = false;
  }
  /// Whether a run was skipped since `begin` for lack of time.
  bool ran_out_of_time() const { return ran_out_of_time_; }

  /// The point of a setting; adds it if it is new.
  std::size_t point(const TuneSetting& setting);
  const std::vector<TunePoint>& points() const { return points_; }
  const TuneSetting& setting(std::size_t point) const { return points_[point].setting; }
  const std::vector<TuneRun>& runs(std::size_t point) const { return points_[point].runs; }
  TuneSummary summary(std::size_t point) const { return summarise(runs(point)); }
  bool feeds(std::size_t point) const { return feeds_step(summary(point)) == Feeds::yes; }
  /// Whether another run may decide whether the point feeds the step.
  bool is_unsure(std::size_t point) const;

  /// Runs each of the points once, in turn. Returns false if time was short; the very first run is
  /// always made.
  bool run(const Points& points);
  /// Whether a point has this many runs, and `fewest_judged_batches`.
  bool has_run(std::size_t runs, std::size_t point) const {
    return this->runs(point).size() >= runs && summary(point).batches >= fewest_judged_batches;
  }
  /// Runs the points in turn until the last of them has this many runs, and
  /// `fewest_judged_batches`.
  void run_until(std::size_t runs, const Points& points);
  /// Runs the points in turn until it is decided whether the first one feeds the step.
  bool judge(const Points& points);

  /// Result of a comparison of throughputs.
  struct Race {
    std::size_t chosen = 0;
    /// The point with the best mean.
    std::size_t best = 0;
    /// Whether the measurements distinguish the points.
    bool clear = true;
    /// Points that may be the best, by the measurements so far.
    Points alive{};
  };
  /// Runs points in turn until the cheapest one without a loss is known. `alive` is sorted, the
  /// cheapest first. If rounds or time do not suffice, chooses the best mean, or the last point if
  /// `last_wins`.
  Race race(Points alive, std::size_t max_rounds, bool last_wins);

  /// The better of the best point's two neighbours in `race.alive`; nullopt if it is not close.
  std::optional<std::size_t> rival(const Race& race) const;

  /// Moves out all points with their summaries.
  std::vector<TunePoint> take();

 private:
  bool run_one(std::size_t point);
  Gain gain(std::size_t first, std::size_t second) const {
    return throughput_gain(runs(first), runs(second), counts_fed_);
  }

  const TuneProbe& probe_;
  double run_seconds_;
  /// Total time of the last run; nullopt before the first one.
  std::optional<double> cost_;
  std::size_t round_ = 0;
  double deadline_ = 0;
  bool counts_fed_ = false;
  bool ran_out_of_time_ = false;
  std::vector<TunePoint> points_;
};

}  // namespace millrace::cli
