// SPDX-License-Identifier: Apache-2.0
#include "tune/tune_measurements.h"

#include <algorithm>
#include <array>
#include <utility>

namespace millrace::cli {

double Measurements::begin(double deadline) {
  deadline_ = deadline;
  refused_ = false;
  return probe_.elapsed();
}

std::size_t Measurements::point(const TuneSetting& setting) {
  const auto found = std::find_if(points_.begin(), points_.end(),
                                  [&](const TunePoint& point) { return point.setting == setting; });
  if (found != points_.end()) return static_cast<std::size_t>(found - points_.begin());
  points_.push_back({.setting = setting});
  return points_.size() - 1;
}

bool Measurements::run(std::size_t point) {
  const double begin = probe_.elapsed();
  if (any_run_ && begin + cost_ > deadline_) {
    refused_ = true;
    return false;
  }
  TuneRun made = probe_.measure(points_[point].setting, run_seconds_);
  any_run_ = true;
  made.at_seconds = begin;
  cost_ = probe_.elapsed() - begin;
  points_[point].runs.push_back(std::move(made));
  return true;
}

std::size_t Measurements::runs_since(std::size_t point, double since) const {
  const std::vector<TuneRun>& runs = points_[point].runs;
  return static_cast<std::size_t>(std::count_if(
      runs.begin(), runs.end(), [since](const TuneRun& run) { return run.at_seconds >= since; }));
}

bool Measurements::run_in_turn(std::span<const std::size_t> points, std::size_t runs,
                               double since) {
  for (std::size_t round = 1; round <= runs; ++round)
    for (const std::size_t point : points)
      if (runs_since(point, since) < round && !run(point)) return false;
  return true;
}

Feeds Measurements::judge(std::size_t point) {
  if (points_[point].runs.empty() && !run(point)) return Feeds::unsure;
  for (;;) {
    const TuneSummary so_far = summary(point);
    const Feeds feeds = feeds_step(so_far);
    const bool disturbed = so_far.disturbed + so_far.set_aside > 0;
    const std::size_t most = disturbed ? most_disturbed_runs : most_runs;
    if (feeds != Feeds::unsure || points_[point].runs.size() >= most || !run(point)) return feeds;
  }
}

bool Measurements::beats(std::size_t first, std::size_t second, double since) {
  const std::array both = {first, second};
  std::size_t rounds = few_runs;
  for (;; ++rounds) {
    const bool in_time = run_in_turn(both, rounds, since);
    const Comparison comparison = compare_rates(summary(first, since), summary(second, since));
    if (comparison.certain || !in_time || rounds >= most_runs) return comparison.higher;
  }
}

std::vector<TunePoint> Measurements::take() {
  for (TunePoint& point : points_) {
    point.summary = summarise(point.runs);
    point.feeds = feeds_step(point.summary);
  }
  return std::move(points_);
}

}  // namespace millrace::cli
