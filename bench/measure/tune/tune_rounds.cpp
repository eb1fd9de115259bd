// SPDX-License-Identifier: Apache-2.0
#include "measure/tune/tune_rounds.h"

#include <algorithm>

namespace millrace::cli {
namespace {

/// Largest mean gain of the best setting over a rival. A setting with a larger loss is soon found
/// to be worse.
constexpr double max_rival_loss = 0.15;

}  // namespace

std::size_t TuneRounds::point(const TuneSetting& setting) {
  const auto found = std::ranges::find(points_, setting, &TunePoint::setting);
  const auto index = static_cast<std::size_t>(found - points_.begin());
  if (found == points_.end()) points_.push_back({.setting = setting});
  return index;
}

bool TuneRounds::is_unsure(std::size_t point) const {
  const TuneSummary so_far = summary(point);
  const bool disturbed = so_far.disturbed + so_far.set_aside > 0;
  const std::size_t most = disturbed ? max_disturbed_runs : max_runs;
  return (runs(point).size() < most || so_far.batches < fewest_judged_batches) &&
         (runs(point).empty() || feeds_step(so_far) == Feeds::unsure);
}

bool TuneRounds::run_one(std::size_t point) {
  const double begin = probe_.elapsed();
  ran_out_of_time_ = cost_ && begin + *cost_ > deadline_;
  if (ran_out_of_time_) return false;
  TuneRun made = probe_.measure(setting(point), run_seconds_);
  made.at_seconds = begin;
  made.round = round_;
  cost_ = probe_.elapsed() - begin;
  points_[point].runs.push_back(std::move(made));
  return true;
}

bool TuneRounds::run(const Points& points) {
  // Reverses the order in every second round, so that a machine that slows down does not always
  // affect the same settings.
  Points order = points;
  if (++round_ % 2 == 0) std::ranges::reverse(order);
  return std::ranges::all_of(order, [this](std::size_t point) { return run_one(point); });
}

void TuneRounds::run_until(std::size_t runs, const Points& points) {
  while (!has_run(runs, points.back()) && run(points)) {
  }
}

bool TuneRounds::judge(const Points& points) {
  while (is_unsure(points.front()) && run(points)) {
  }
  return feeds(points.front());
}

TuneRounds::Race TuneRounds::race(Points alive, std::size_t max_rounds, bool last_wins) {
  Race race;
  // Checks at growing intervals: checking after every round would find differences by chance.
  std::size_t next_look = few_runs;
  for (std::size_t round = 1;; ++round) {
    const bool in_time = run(alive);
    if (in_time && round < next_look) continue;
    next_look += round;
    std::erase_if(alive, [this](std::size_t point) { return runs(point).empty(); });
    race.best = alive.back();
    for (const std::size_t point : alive)
      if (gain(point, race.best).mean > 0) race.best = point;
    std::erase_if(alive, [&](std::size_t point) {
      return point != race.best && gain(race.best, point).low() > min_loss;
    });
    race.chosen = alive.front();
    race.clear = std::ranges::all_of(alive, [&](std::size_t point) {
      return point == race.chosen || gain(point, race.chosen).high() <= tolerance;
    });
    race.alive = alive;
    if (race.clear) return race;
    if (!in_time || round >= max_rounds) break;
  }
  // The comparison is not decided. Chooses the cheapest point that loses at most twice the
  // tolerance (once the tolerance if `last_wins`).
  const std::size_t winner = last_wins ? alive.back() : race.best;
  const double max_loss = last_wins ? tolerance : 2 * tolerance;
  race.chosen = *std::ranges::find_if(alive, [&](std::size_t point) {
    return point == winner || gain(winner, point).high() <= max_loss;
  });
  race.clear = race.chosen != winner;
  return race;
}

std::optional<std::size_t> TuneRounds::rival(const Race& race) const {
  const auto best = std::ranges::find(race.alive, race.best);
  std::optional<std::size_t> rival;
  if (best != race.alive.begin()) rival = *(best - 1);
  if (const auto next = best + 1; next != race.alive.end())
    if (!rival || gain(*next, *rival).mean > 0) rival = *next;
  if (rival && gain(race.best, *rival).mean > max_rival_loss) rival.reset();
  return rival;
}

std::vector<TunePoint> TuneRounds::take() {
  for (TunePoint& point : points_) {
    point.summary = summarise(point.runs);
    point.feeds = feeds_step(point.summary);
  }
  return std::move(points_);
}

}  // namespace millrace::cli
