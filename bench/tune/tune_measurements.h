// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "tune/tune_search.h"
#include "tune/tune_statistics.h"

namespace millrace::cli {

/// The runs of all settings so far. Makes more while there is time for them.
class Measurements {
 public:
  /// Runs are planned to take `run_seconds` each.
  Measurements(const TuneProbe& probe, double run_seconds)
      : probe_(probe), run_seconds_(run_seconds), cost_(run_seconds) {}

  /// A new question, which may take until `deadline` (seconds since the tune began). Returns when
  /// it begins.
  double begin(double deadline);
  /// Whether a run was refused since `begin` because there was no time.
  bool refused() const { return refused_; }

  /// Its index; a new one where the setting is new.
  std::size_t point(const TuneSetting& setting);
  const std::vector<TunePoint>& points() const { return points_; }
  const TuneSetting& setting(std::size_t point) const { return points_[point].setting; }
  TuneSummary summary(std::size_t point, double since = 0) const {
    return summarise(points_[point].runs, since);
  }

  /// One run. False where there is no time for it; the very first run is always made.
  bool run(std::size_t point);
  /// Runs them in turn until each has so many runs since `since`. False where the time did not
  /// suffice.
  bool run_in_turn(std::span<const std::size_t> points, std::size_t runs, double since = 0);

  /// Runs it until it is clear whether it feeds the step, or has its most runs, or the time is
  /// over.
  Feeds judge(std::size_t point);
  /// Whether the first one's throughput is higher beyond noise; runs both in turn until that is
  /// clear or as above.
  bool beats(std::size_t first, std::size_t second, double since = 0);

  /// All points with their summaries, moved out.
  std::vector<TunePoint> take();

 private:
  std::size_t runs_since(std::size_t point, double since) const;

  const TuneProbe& probe_;
  double run_seconds_;
  /// What the last run took in all.
  double cost_;
  double deadline_ = 0;
  bool refused_ = false;
  bool any_run_ = false;
  std::vector<TunePoint> points_;
};

}  // namespace millrace::cli
