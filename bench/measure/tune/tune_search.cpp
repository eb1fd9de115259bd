// SPDX-License-Identifier: Apache-2.0
#include "measure/tune/tune_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "measure/text/text.h"
#include "measure/tune/tune_searcher.h"
#include "measure/tune/tune_statistics.h"
#include "measure/tune/tune_text.h"

namespace millrace::cli {
namespace {

/// The knee is the fewest workers with this share of the highest fitted throughput.
constexpr double knee_share = 0.95;
/// Smallest gain in the time to the first batch that counts. A run has only one first batch, so
/// this time is noisy.
constexpr double min_start_gain = 0.10;
/// Number of runs in the budget. Many short runs give more information than a few long ones:
/// disturbances last longer than a run, so compared settings share them.
constexpr double runs_in_budget = 300;
constexpr double longest_run_seconds = 3;
constexpr double shortest_run_seconds = 0.02;
/// Share of the time budget at which the search of each `TuneVariable` ends, in their order. Time
/// left over is used by the next variables.
constexpr double shares[] = {0.8, 0.9, 0.95, 1, 0.8};
constexpr double shares_with_batch_size[] = {0.55, 0.65, 0.7, 1, 0.55};
/// The search of the workers ends at this share of its time if the device's share is searched next.
constexpr double before_device_share = 0.5;

}  // namespace

TuneSearcher::TuneSearcher(const TuneGoal& goal, const TuneProbe& probe)
    : goal_(goal),
      probe_(probe),
      batch_size_is_searched_(goal.tune_batch_size || is_limited()),
      rounds_(probe, std::clamp(goal.budget_seconds / runs_in_budget, shortest_run_seconds,
                                longest_run_seconds)),
      base_{.prefetch = ample_prefetch, .batch_size = goal.batch_size} {
  if (goal.tune_device_share) base_.device_share = 1;
}

TuneFindings TuneSearcher::run() {
  search_workers();
  if (goal_.tune_device_share) search_device_share();
  search_prefetch();
  search_micro_batches();
  if (batch_size_is_searched_) search_batch_size();
  if (findings_.outcome != TuneOutcome::nothing_fits) {
    rounds_.begin(goal_.budget_seconds);
    if (goal_.step_ms > 0) confirm_chosen();
    if (!rounds_.feeds(chosen_)) compare_with_neighbours();
    update_phases();
  }
  return finish();
}

double TuneSearcher::end_of(TuneVariable variable) const {
  const auto number = static_cast<std::size_t>(variable);
  const double end =
      goal_.budget_seconds * (batch_size_is_searched_ ? shares_with_batch_size : shares)[number];
  const bool shares_time = variable == TuneVariable::workers && goal_.tune_device_share;
  return shares_time ? before_device_share * end : end;
}

void TuneSearcher::begin(TuneVariable variable) {
  variable_ = variable;
  if (variable != TuneVariable::workers) base_ = setting(chosen_);
  rounds_.begin(end_of(variable));
}

TunePhase& TuneSearcher::end() {
  if (rounds_.ran_out_of_time())
    findings_.not_measured.push_back(
        fmt::format("{}: the time was over before every value was tried often enough to be sure; "
                    "{} is the best of the measured values",
                    to_string(variable_), value_text(setting(chosen_), variable_)));
  return findings_.phases.emplace_back(
      TunePhase{.variable = variable_, .points = tried(), .chosen = chosen_});
}

TuneSearcher::Points TuneSearcher::points_of(const Values& values) {
  Points points;
  for (const std::size_t value : values) points.push_back(point_of(value));
  return points;
}

TuneSearcher::Points TuneSearcher::tried() const {
  Points points;
  for (std::size_t point = 0; point < rounds_.points().size(); ++point) {
    TuneSetting other = changed(setting(point), variable_, value_of(base_, variable_));
    if (variable_ == TuneVariable::batch_size) other.micro_batches = base_.micro_batches;
    if (other == base_ && !rounds_.runs(point).empty()) points.push_back(point);
  }
  std::ranges::sort(points, {}, [this](std::size_t point) { return value_at(point); });
  return points;
}

std::optional<std::size_t> TuneSearcher::smallest_that_feeds(const Values& values) {
  const auto is_fed = [this](std::size_t value) { return rounds_.feeds(point_of(value)); };
  // Starts with the smallest value; adds the next if all undecided ones have `few_runs` runs.
  Values tried;
  for (;;) {
    const auto fed = std::ranges::find_if(tried, is_fed);
    const bool any_fed = fed != tried.end();
    if (any_fed) tried.erase(fed + 1, tried.end());
    Points unsure = points_of(tried);
    std::erase_if(unsure, [this](std::size_t point) { return !rounds_.is_unsure(point); });
    if (!any_fed && tried.size() < values.size() &&
        std::ranges::all_of(
            unsure, [this](std::size_t point) { return rounds_.has_run(few_runs, point); })) {
      tried.push_back(values[tried.size()]);
      unsure.push_back(point_of(tried.back()));
    }
    if (unsure.empty()) break;
    // If the chosen setting feeds the step, it runs in turn with the undecided values.
    if (feeds_ && std::ranges::find(unsure, chosen_) == unsure.end()) unsure.push_back(chosen_);
    if (!rounds_.run(unsure)) break;
  }
  const auto fed = std::ranges::find_if(tried, is_fed);
  if (fed == tried.end()) return std::nullopt;
  return bisect(tried, *fed, [&](std::size_t value) {
    return rounds_.judge({point_of(value), point_of(*fed)});
  });
}

std::size_t TuneSearcher::smallest_at_best_rate(Values values) {
  TuneRounds::Race all = race(points_of(values), all_values_rounds);
  if (!all.clear && !rounds_.ran_out_of_time()) {
    // The rate has one maximum. If noise hides which of two values is nearer to it, a value between
    // them is about as good. Adding it lowers the risk of a bad choice by chance.
    const std::size_t rival = rounds_.rival(all).value_or(all.best);
    const std::size_t between = (value_at(all.best) + value_at(rival)) / 2;
    if (variable_ == TuneVariable::workers && !std::ranges::binary_search(values, between)) {
      values.insert(std::ranges::upper_bound(values, between), between);
      all.alive.push_back(point_of(between));
      std::ranges::sort(all.alive, {}, [this](std::size_t point) { return value_at(point); });
    }
    all = race(all.alive, best_values_rounds);
  }
  const std::size_t found = value_at(all.chosen);
  if (!all.clear) {
    findings_.not_told_apart.push_back(variable_);
    return found;
  }
  return bisect(values, found, [&](std::size_t value) {
    const TuneRounds::Race pair = race({point_of(value), all.best}, pair_rounds);
    return pair.clear && pair.chosen == point_of(value);
  });
}

void TuneSearcher::search_workers() {
  begin(TuneVariable::workers);
  choose_workers();
  end();
}

void TuneSearcher::choose_workers() {
  std::erase(findings_.not_told_apart, TuneVariable::workers);
  const Values values = doubling(1, goal_.max_workers);
  std::optional<std::size_t> found;
  if (goal_.step_ms > 0) found = smallest_that_feeds(values);
  feeds_ = found.has_value();
  chosen_ = point_of(found ? *found : smallest_at_best_rate(values));
  base_ = setting(chosen_);
}

void TuneSearcher::search_prefetch() {
  begin(TuneVariable::prefetch);
  const Values values = doubling(min_prefetch, ample_prefetch);
  chosen_ = point_of(feeds_ ? smallest_that_feeds(values).value_or(ample_prefetch)
                            : smallest_at_best_rate(values));
  end();
}

void TuneSearcher::search_micro_batches() {
  begin(TuneVariable::micro_batches);
  std::string gained;
  for (std::size_t parts = 2; parts <= std::min(goal_.batch_size, max_micro_batches); parts *= 2) {
    const std::size_t more = point_of(parts);
    // A comparison may show a gain by chance, so it is repeated with more runs.
    std::string gain;
    for (const std::size_t runs : {few_runs, max_runs}) {
      rounds_.run_until(runs, {chosen_, more});
      gain = micro_batches_gain(more);
      if (gain.empty()) break;
    }
    if (gain.empty() || rounds_.ran_out_of_time()) break;
    chosen_ = more;
    gained = gain;
  }
  end().why = gained.empty()
                  ? "Each batch is copied in one micro-batch: more gain nothing beyond noise."
                  : fmt::format("Copying each batch in {} micro-batches gains {} beyond noise.",
                                setting(chosen_).micro_batches, gained);
}

std::string TuneSearcher::micro_batches_gain(std::size_t more) const {
  if (feeds_ && !rounds_.feeds(more)) return {};
  if (throughput_gain(rounds_.runs(more), rounds_.runs(chosen_)).low() > min_loss)
    return "throughput";
  const bool sooner = start_gain(rounds_.runs(more), rounds_.runs(chosen_)).low() > min_start_gain;
  return sooner ? "the time to the first batch" : "";
}

// Spends the remaining time on the chosen setting: each pass adds an eighth to its runs. If all its
// runs together show that it does not feed the step, chooses the cheapest one that does.
void TuneSearcher::confirm_chosen() {
  const std::size_t before = chosen_;
  for (bool goes_on = true; goes_on;) {
    Points fed(rounds_.points().size());
    std::iota(fed.begin(), fed.end(), std::size_t{0});
    std::erase_if(fed, [&](std::size_t point) {
      return setting(point).batch_size != setting(before).batch_size ||
             setting(point).device_share != setting(before).device_share || !rounds_.feeds(point);
    });
    if (!rounds_.feeds(chosen_))
      chosen_ = fed.empty() ? before : std::ranges::min(fed, {}, [this](std::size_t point) {
        return std::tuple(setting(point).workers, setting(point).prefetch);
      });
    rounds_.run_until(fed.empty() ? 0 : 1 + 9 * rounds_.runs(chosen_).size() / 8, {chosen_});
    goes_on = !fed.empty() && !rounds_.ran_out_of_time();
  }
  if (feeds_ && !rounds_.feeds(chosen_)) {
    variable_ = TuneVariable::workers;
    std::erase(findings_.not_told_apart, variable_);
    base_ = changed(setting(chosen_), TuneVariable::prefetch, ample_prefetch);
    chosen_ = point_of(smallest_at_best_rate(doubling(1, goal_.max_workers)));
    findings_.phases.front().points = tried();
  }
}

// Spends the remaining time on the chosen setting and its neighbours in workers and prefetch, in
// turn. Then chooses one of them by all their runs.
void TuneSearcher::compare_with_neighbours() {
  base_ = setting(chosen_);
  Points rivals{chosen_};
  for (const TuneVariable variable : {TuneVariable::workers, TuneVariable::prefetch}) {
    variable_ = variable;
    const Points line = tried();
    const auto at = std::ranges::find(line, chosen_);
    if (at == line.end()) continue;
    if (at != line.begin()) rivals.push_back(*(at - 1));
    if (at + 1 != line.end()) rivals.push_back(*(at + 1));
  }
  if (rivals.size() == 1) return;
  std::ranges::sort(rivals, {}, [this](std::size_t point) {
    return std::tuple(setting(point).workers, setting(point).prefetch);
  });
  while (rounds_.run(rivals)) {
  }
  const TuneRounds::Race all = rounds_.race(rivals, pair_rounds, false);
  if (!all.clear) return;
  chosen_ = all.chosen;
  std::erase(findings_.not_told_apart, TuneVariable::workers);
  std::erase(findings_.not_told_apart, TuneVariable::prefetch);
}

void TuneSearcher::update_phases() {
  for (TunePhase& phase : findings_.phases)
    for (const std::size_t point : phase.points)
      if (value_of(setting(point), phase.variable) == value_of(setting(chosen_), phase.variable))
        phase.chosen = point;
}

TuneFindings TuneSearcher::finish() {
  std::vector<ScalingPoint> rates;
  for (const std::size_t point : findings_.phases.front().points) {
    if (rounds_.feeds(point)) continue;  // the step limited its rate
    for (const TuneRun* run : counting_runs(rounds_.runs(point)))
      rates.push_back({static_cast<double>(setting(point).workers), run->samples_per_second});
  }
  findings_.fit = fit_usl(rates);
  findings_.knee = usl_knee(findings_.fit, goal_.max_workers, knee_share);
  findings_.run_seconds = rounds_.run_seconds();
  findings_.chosen = setting(chosen_);
  findings_.chosen_point = chosen_;
  findings_.points = rounds_.take();
  const bool feeds = findings_.points[chosen_].feeds == Feeds::yes;
  if (findings_.outcome != TuneOutcome::nothing_fits)
    findings_.outcome = feeds               ? TuneOutcome::feeds_step
                        : goal_.step_ms > 0 ? TuneOutcome::nothing_feeds
                                            : TuneOutcome::no_step;
  findings_.total_seconds = probe_.elapsed();
  say_why(goal_, findings_);
  return std::move(findings_);
}

TuneFindings search_settings(const TuneGoal& goal, const TuneProbe& probe) {
  return TuneSearcher(goal, probe).run();
}

}  // namespace millrace::cli
