// SPDX-License-Identifier: Apache-2.0
#include "measure/tune/tune_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "measure/text/text.h"
#include "measure/tune/tune_rounds.h"
#include "measure/tune/tune_text.h"
#include "measure/tune/tune_values.h"

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
constexpr double shares[] = {0.8, 0.9, 0.95, 1};
constexpr double shares_with_batch_size[] = {0.55, 0.65, 0.7, 1};
/// Most rounds of a race whose settings cannot be told apart: first of all values of a variable,
/// then of those that may be the best, and of two values or of neighbouring settings.
constexpr std::size_t all_values_rounds = 24;
constexpr std::size_t best_values_rounds = 200;
constexpr std::size_t pair_rounds = 12;

using Points = TuneRounds::Points;

class Search {
 public:
  Search(const TuneGoal& goal, const TuneProbe& probe);
  TuneFindings run();

 private:
  void begin(TuneVariable variable);
  TunePhase& end();
  const TuneSetting& setting(std::size_t point) const { return rounds_.setting(point); }
  /// Value of the current variable.
  std::size_t value_at(std::size_t point) const { return value_of(setting(point), variable_); }
  /// Point of `base_` with this value of the current variable; added if it is new.
  std::size_t point_of(std::size_t value) {
    return rounds_.point(changed(base_, variable_, value));
  }
  Points points_of(const Values& values);
  /// Points with runs that differ from `base_` only in the current variable, sorted by its value.
  Points tried() const;

  TuneRounds::Race race(Points points, std::size_t max_rounds) {
    return rounds_.race(std::move(points), max_rounds, variable_ == TuneVariable::prefetch);
  }
  bool beats(std::size_t dearer, std::size_t cheaper) {
    const TuneRounds::Race pair = race({cheaper, dearer}, pair_rounds);
    return pair.clear && pair.chosen == dearer;
  }
  /// These functions return one of the values, or a value between two of them.
  std::optional<std::size_t> smallest_that_feeds(const Values& values);
  std::size_t smallest_at_best_rate(Values values);

  void search_workers();
  void search_prefetch();
  void search_micro_batches();
  std::string micro_batches_gain(std::size_t more) const;
  void search_batch_size();
  bool is_limited() const { return goal_.p99_ms || goal_.memory_bytes; }
  /// Returns the reason why a batch size does not fit; empty if it fits.
  std::string misfit(std::size_t batch_size);

  void confirm_chosen();
  void compare_with_neighbours();
  void update_phases();
  TuneFindings finish();

  const TuneGoal& goal_;
  const TuneProbe& probe_;
  const bool batch_size_is_searched_;
  TuneRounds rounds_;
  TuneFindings findings_;
  /// The current variable, and the setting from which the search starts.
  TuneVariable variable_ = TuneVariable::workers;
  TuneSetting base_;
  /// The best point so far, and whether it feeds the step.
  std::size_t chosen_ = 0;
  bool feeds_ = false;
};

Search::Search(const TuneGoal& goal, const TuneProbe& probe)
    : goal_(goal),
      probe_(probe),
      batch_size_is_searched_(goal.tune_batch_size || is_limited()),
      rounds_(probe, std::clamp(goal.budget_seconds / runs_in_budget, shortest_run_seconds,
                                longest_run_seconds)),
      base_{.prefetch = ample_prefetch, .batch_size = goal.batch_size} {}

TuneFindings Search::run() {
  search_workers();
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

void Search::begin(TuneVariable variable) {
  variable_ = variable;
  if (variable != TuneVariable::workers) base_ = setting(chosen_);
  const auto number = static_cast<std::size_t>(variable);
  rounds_.begin(goal_.budget_seconds *
                (batch_size_is_searched_ ? shares_with_batch_size : shares)[number]);
}

TunePhase& Search::end() {
  if (rounds_.ran_out_of_time())
    findings_.not_measured.push_back(
        fmt::format("{}: the time was over before every value was tried often enough to be sure; "
                    "{} is the best of the measured values",
                    to_string(variable_), value_at(chosen_)));
  return findings_.phases.emplace_back(
      TunePhase{.variable = variable_, .points = tried(), .chosen = chosen_});
}

Points Search::points_of(const Values& values) {
  Points points;
  for (const std::size_t value : values) points.push_back(point_of(value));
  return points;
}

Points Search::tried() const {
  Points points;
  for (std::size_t point = 0; point < rounds_.points().size(); ++point) {
    TuneSetting other = changed(setting(point), variable_, value_of(base_, variable_));
    if (variable_ == TuneVariable::batch_size) other.micro_batches = base_.micro_batches;
    if (other == base_ && !rounds_.runs(point).empty()) points.push_back(point);
  }
  std::ranges::sort(points, {}, [this](std::size_t point) { return value_at(point); });
  return points;
}

std::optional<std::size_t> Search::smallest_that_feeds(const Values& values) {
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

std::size_t Search::smallest_at_best_rate(Values values) {
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

void Search::search_workers() {
  begin(TuneVariable::workers);
  const Values values = doubling(1, goal_.max_workers);
  std::optional<std::size_t> found;
  if (goal_.step_ms > 0) found = smallest_that_feeds(values);
  feeds_ = found.has_value();
  chosen_ = point_of(found ? *found : smallest_at_best_rate(values));
  base_ = setting(chosen_);
  end();
}

void Search::search_prefetch() {
  begin(TuneVariable::prefetch);
  const Values values = doubling(min_prefetch, ample_prefetch);
  chosen_ = point_of(feeds_ ? smallest_that_feeds(values).value_or(ample_prefetch)
                            : smallest_at_best_rate(values));
  end();
}

void Search::search_micro_batches() {
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

std::string Search::micro_batches_gain(std::size_t more) const {
  if (feeds_ && !rounds_.feeds(more)) return {};
  if (throughput_gain(rounds_.runs(more), rounds_.runs(chosen_)).low() > min_loss)
    return "throughput";
  const bool sooner = start_gain(rounds_.runs(more), rounds_.runs(chosen_)).low() > min_start_gain;
  return sooner ? "the time to the first batch" : "";
}

void Search::search_batch_size() {
  begin(TuneVariable::batch_size);
  // Largest size that fits, and smallest that does not fit; 0 = not known yet.
  std::size_t low = 0;
  std::size_t high = 0;
  std::string limit;
  for (std::size_t next = goal_.batch_size;
       next > 0 && (high == 0 || !rounds_.ran_out_of_time());) {
    std::string problem = misfit(next);
    (problem.empty() ? low : high) = next;
    if (high == 0 || high == next) limit = std::move(problem);
    if (high == 0)
      next = low < goal_.max_batch_size ? std::min(2 * low, goal_.max_batch_size) : 0;
    else if (low == 0)
      next = high / 2;
    else
      next = is_limited() && high > low + std::max<std::size_t>(1, low / 8) ? (low + high) / 2 : 0;
  }
  if (low == 0) findings_.outcome = TuneOutcome::nothing_fits;
  chosen_ = low > 0 ? point_of(low) : tried().front();
  std::string why = low == 0
                        ? "No batch size keeps within " + limits_text(goal_)
                        : fmt::format("Batches of {}{}", count_text(low, "sample"),
                                      is_limited() ? " keep within " + limits_text(goal_) : "");
  if (!limit.empty()) why += (low > 0 && is_limited() ? "; " : ": ") + limit;
  end().why = why + ".";
}

std::string Search::misfit(std::size_t batch_size) {
  const auto megabytes = [](double bytes) { return fmt::format("{:.0f} MB", bytes / 1e6); };
  const std::size_t max_bytes =
      std::min(goal_.max_memory_bytes, goal_.memory_bytes.value_or(SIZE_MAX));
  const double expected_bytes = static_cast<double>(rounds_.summary(chosen_).memory_bytes) *
                                static_cast<double>(batch_size) /
                                static_cast<double>(goal_.batch_size);
  // The scratch does not grow with the batch, so the estimate may be too high. Sizes are measured
  // up to an estimate of 1.5 times the limit.
  if (expected_bytes > 1.5 * static_cast<double>(max_bytes))
    return fmt::format("{} samples take about {}", batch_size, megabytes(expected_bytes));
  const std::size_t point = point_of(batch_size);
  rounds_.run_until(few_runs, {point});
  const TuneSummary measured = rounds_.summary(point);
  if (measured.runs == 0) return fmt::format("{} samples could not be tried in time", batch_size);
  if (goal_.p99_ms && measured.batch_p99_ms > *goal_.p99_ms)
    return fmt::format("{} samples take {:.1f} ms at the 99th percentile", batch_size,
                       measured.batch_p99_ms);
  if (measured.memory_bytes > max_bytes)
    return fmt::format("{} samples take {}", batch_size,
                       megabytes(static_cast<double>(measured.memory_bytes)));
  if (feeds_ && !rounds_.judge({point}))
    return fmt::format("{} samples do not feed the step", batch_size);
  if (!feeds_ && point != chosen_ && beats(chosen_, point))
    return fmt::format("{} samples are made at a lower rate", batch_size);
  if (!is_limited() && batch_size > goal_.batch_size && !beats(point, point_of(batch_size / 2)))
    return fmt::format("{} samples are made at no higher rate", batch_size);
  return {};
}

// Spends the remaining time on the chosen setting: each pass adds an eighth to its runs. If all its
// runs together show that it does not feed the step, chooses the cheapest one that does.
void Search::confirm_chosen() {
  const std::size_t before = chosen_;
  for (bool goes_on = true; goes_on;) {
    Points fed(rounds_.points().size());
    std::iota(fed.begin(), fed.end(), std::size_t{0});
    std::erase_if(fed, [&](std::size_t point) {
      return setting(point).batch_size != setting(before).batch_size || !rounds_.feeds(point);
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
    base_ = changed(setting(chosen_), TuneVariable::prefetch, ample_prefetch);
    chosen_ = point_of(smallest_at_best_rate(doubling(1, goal_.max_workers)));
    findings_.phases.front().points = tried();
  }
}

// Spends the remaining time on the chosen setting and its neighbours in workers and prefetch, in
// turn. Then chooses one of them by all their runs.
void Search::compare_with_neighbours() {
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
  findings_.not_told_apart.clear();
}

void Search::update_phases() {
  for (TunePhase& phase : findings_.phases)
    for (const std::size_t point : phase.points)
      if (value_of(setting(point), phase.variable) == value_of(setting(chosen_), phase.variable))
        phase.chosen = point;
}

TuneFindings Search::finish() {
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

}  // namespace

TuneFindings search_settings(const TuneGoal& goal, const TuneProbe& probe) {
  return Search(goal, probe).run();
}

}  // namespace millrace::cli
