// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "tune/tune_statistics.h"

namespace millrace::cli {

/// The runs of all settings so far, and more of them as long as there is time. A point is a setting
/// with its runs, named by its index.
class TuneRounds {
 public:
  using Points = std::vector<std::size_t>;

  /// Runs are planned to take `run_seconds` each.
  TuneRounds(const TuneProbe& probe, double run_seconds)
      : probe_(probe), run_seconds_(run_seconds) {}

  double run_seconds() const { return run_seconds_; }
  /// Begins with a new variable, which may take until `deadline` (seconds since the tune began).
  void begin(double deadline) {
    deadline_ = deadline;
    refused_ = false;
  }
  /// Whether a run was refused since `begin` because there was no time for it.
  bool refused() const { return refused_; }

  /// The point of a setting, which is added if it is new.
  std::size_t point(const TuneSetting& setting);
  const std::vector<TunePoint>& points() const { return points_; }
  const TuneSetting& setting(std::size_t point) const { return points_[point].setting; }
  const std::vector<TuneRun>& runs(std::size_t point) const { return points_[point].runs; }
  TuneSummary summary(std::size_t point) const { return summarise(runs(point)); }
  bool feeds(std::size_t point) const { return feeds_step(summary(point)) == Feeds::yes; }
  /// Whether another run may make clear whether it feeds the step.
  bool is_unsure(std::size_t point) const;

  /// One round: runs each of the points once, in turn. Returns false if the time did not suffice;
  /// the very first run is always made.
  bool run(const Points& points);
  /// Whether a point has so many runs, and `fewest_judged_batches`.
  bool has_run(std::size_t runs, std::size_t point) const {
    return this->runs(point).size() >= runs && summary(point).batches >= fewest_judged_batches;
  }
  /// Runs them in turn until the last of them has so many runs, and `fewest_judged_batches`.
  void run_until(std::size_t runs, const Points& points);
  /// Runs them in turn until it is clear whether the first one feeds the step.
  bool judge(const Points& points);

  /// What a comparison of throughputs came to.
  struct Race {
    std::size_t chosen = 0;
    /// The one with the best mean.
    std::size_t best = 0;
    /// Whether they could be told apart.
    bool clear = true;
    /// Those that may be the best, by what was measured.
    Points alive{};
  };
  /// Runs points, the cheapest first, in turn until it is clear which is the cheapest that loses
  /// nothing. If that never is in these rounds and the time, the best mean is chosen, or the last
  /// one if `last_wins`.
  Race race(Points alive, std::size_t most_rounds, bool last_wins);

  /// The better one of the best point's neighbours among those alive; nullopt if none is close.
  std::optional<std::size_t> rival(const Race& race) const;

  /// All points with their summaries, moved out.
  std::vector<TunePoint> take();

 private:
  bool run_one(std::size_t point);
  Gain gain(std::size_t first, std::size_t second) const {
    return throughput_gain(runs(first), runs(second));
  }

  const TuneProbe& probe_;
  double run_seconds_;
  /// What the last run took in all; nullopt before the first one.
  std::optional<double> cost_;
  std::size_t round_ = 0;
  double deadline_ = 0;
  bool refused_ = false;
  std::vector<TunePoint> points_;
};

}  // namespace millrace::cli
