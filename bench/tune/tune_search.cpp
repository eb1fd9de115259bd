// SPDX-License-Identifier: Apache-2.0
#include "tune/tune_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>

#include "tune/tune_batch_size.h"
#include "tune/tune_measurements.h"
#include "tune/tune_text.h"

namespace millrace::cli {
namespace {

constexpr std::size_t ample_prefetch = 8;
constexpr std::size_t most_micro_batches = 16;
/// The knee is where this share of the highest throughput is reached.
constexpr double knee_share = 0.95;
/// The first batch must come earlier by this share to count as a gain: it comes once in a run, so
/// its time says little.
constexpr double least_start_gain = 0.10;
constexpr double longest_run_seconds = 3;
constexpr double shortest_run_seconds = 0.02;

/// How many settings are about tried for each variable, by which the budget is shared out. What one
/// leaves over is for the next ones.
constexpr double prefetch_settings = 3;
constexpr double micro_batches_settings = 2;
constexpr double batch_size_settings = 3;
/// Powers of two, and on larger machines some worker counts between them.
double workers_settings(unsigned most) {
  const auto powers = static_cast<double>(std::bit_width(most));
  return 2 + (most > 4 ? 1.5 * powers : powers);
}
/// Of each setting.
constexpr double usual_runs = 4;

/// 1, 2, 4 ... below `most`, then `most`.
std::vector<std::size_t> doubling(std::size_t most) {
  std::vector<std::size_t> values;
  for (std::size_t value = 1; value < most; value *= 2) values.push_back(value);
  values.push_back(most);
  return values;
}

/// Neighbours closer than this are as good as one: 1 up to 31, then a sixteenth.
std::size_t resolution(std::size_t value) { return std::max<std::size_t>(1, value / 16); }

/// The smallest value up to `most` that `fits`, given that larger ones fit as well; none where
/// `most` does not.
template <typename Fits>
std::optional<std::size_t> smallest(std::size_t most, Fits fits) {
  std::size_t low = 0;
  std::size_t high = 0;
  for (const std::size_t value : doubling(most)) {
    if (fits(value)) {
      high = value;
      break;
    }
    low = value;
  }
  if (high == 0) return std::nullopt;
  while (high - low > resolution(low)) {
    const std::size_t middle = (low + high) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

class Search {
 public:
  Search(const TuneGoal& goal, const TuneProbe& probe)
      : goal_(goal),
        probe_(probe),
        batch_size_is_searched_(goal.tune_batch_size || goal.p99_ms || goal.memory_bytes),
        settings_(workers_settings(goal.max_workers) + prefetch_settings + micro_batches_settings +
                  (batch_size_is_searched_ ? batch_size_settings : 0)),
        measurements_(probe, planned_run()) {}

  TuneFindings run() {
    search_workers();
    search_prefetch();
    search_micro_batches();
    if (batch_size_is_searched_) search_batch_size();
    return finish();
  }

 private:
  double planned_run() const;
  double deadline_after(double settings) const {
    return goal_.budget_seconds * settings / settings_;
  }
  std::size_t workers_point(std::size_t workers) {
    return measurements_.point({.workers = static_cast<unsigned>(workers),
                                .prefetch = ample_prefetch,
                                .batch_size = goal_.batch_size});
  }

  void search_workers();
  bool find_feeding_workers();
  std::size_t find_knee();
  void refine_knee();
  /// The worker counts that were measured, ascending, as points.
  std::vector<std::size_t> measured_workers() const;
  std::size_t knee_of_measured() const;
  void fit_workers();
  /// Down to the cheapest point that is within noise of the chosen one, as often as there is one.
  std::size_t cheapest_within_noise(std::size_t chosen, std::vector<std::size_t> cheapest_first,
                                    double since);

  void search_prefetch();
  void search_micro_batches();
  std::string micro_batches_gain(std::size_t current, std::size_t more, double since);
  void search_batch_size();

  void end_phase(TuneVariable variable, std::vector<std::size_t> points);
  TuneFindings finish();

  const TuneGoal& goal_;
  const TuneProbe& probe_;
  const bool batch_size_is_searched_;
  const double settings_;
  Measurements measurements_;
  TuneFindings findings_;
  /// The point that is the best so far.
  std::size_t chosen_ = 0;
  bool feeds_ = false;
};

double Search::planned_run() const {
  return std::clamp(0.9 * goal_.budget_seconds / (usual_runs * settings_), shortest_run_seconds,
                    longest_run_seconds);
}

void Search::search_workers() {
  measurements_.begin(deadline_after(workers_settings(goal_.max_workers)));
  feeds_ = goal_.step_ms > 0 && find_feeding_workers();
  if (!feeds_) chosen_ = find_knee();
  fit_workers();
  end_phase(TuneVariable::workers, measured_workers());
}

bool Search::find_feeding_workers() {
  const std::optional<std::size_t> workers = smallest(goal_.max_workers, [&](std::size_t count) {
    return measurements_.judge(workers_point(count)) == Feeds::yes;
  });
  if (workers) chosen_ = workers_point(*workers);
  return workers.has_value();
}

std::vector<std::size_t> Search::measured_workers() const {
  std::vector<std::size_t> points;
  for (std::size_t point = 0; point < measurements_.points().size(); ++point)
    if (!measurements_.points()[point].runs.empty() &&
        measurements_.setting(point).prefetch == ample_prefetch)
      points.push_back(point);
  std::sort(points.begin(), points.end(), [&](std::size_t a, std::size_t b) {
    return measurements_.setting(a).workers < measurements_.setting(b).workers;
  });
  return points;
}

void Search::fit_workers() {
  std::vector<ScalingPoint> rates;
  for (const std::size_t point : measured_workers()) {
    if (feeds_step(measurements_.summary(point)) == Feeds::yes)
      continue;  // the step held its rate down
    for (const TuneRun* run : counting_runs(measurements_.points()[point].runs))
      rates.push_back(
          {static_cast<double>(measurements_.setting(point).workers), run->samples_per_second});
  }
  findings_.fit = fit_usl(rates);
  findings_.knee = usl_knee(findings_.fit, goal_.max_workers, knee_share);
}

std::size_t Search::knee_of_measured() const {
  const std::vector<std::size_t> points = measured_workers();
  double best = 0;
  for (const std::size_t point : points)
    best = std::max(best, measurements_.summary(point).samples_per_second.mean);
  return *std::find_if(points.begin(), points.end(), [&](std::size_t point) {
    return measurements_.summary(point).samples_per_second.mean >= knee_share * best;
  });
}

std::size_t Search::find_knee() {
  std::vector<std::size_t> powers;
  for (const std::size_t workers : doubling(goal_.max_workers))
    powers.push_back(workers_point(workers));
  measurements_.run_in_turn(powers, few_runs);
  refine_knee();
  std::vector<std::size_t> cheapest_first = measured_workers();
  return cheapest_within_noise(knee_of_measured(), std::move(cheapest_first), 0);
}

void Search::refine_knee() {
  const auto measure = [&](std::size_t workers) {
    const std::array point = {workers_point(workers)};
    return measurements_.run_in_turn(point, few_runs);
  };
  fit_workers();
  bool goes_on = measure(findings_.knee);
  while (goes_on) {
    fit_workers();
    const std::size_t high = measurements_.setting(knee_of_measured()).workers;
    std::size_t low = 0;
    for (const std::size_t point : measured_workers())
      if (measurements_.setting(point).workers < high) low = measurements_.setting(point).workers;
    if (high - low <= resolution(low)) return;
    goes_on =
        measure(findings_.knee > low && findings_.knee < high ? findings_.knee : (low + high) / 2);
  }
}

std::size_t Search::cheapest_within_noise(std::size_t chosen,
                                          std::vector<std::size_t> cheapest_first, double since) {
  // Each round ends with a cheaper one, so this ends.
  for (;;) {
    const auto cheaper =
        std::find_if(cheapest_first.begin(), cheapest_first.end(), [&](std::size_t point) {
          if (point == chosen) return true;
          // A single run says nothing of the noise: there was no time for more.
          return measurements_.summary(point, since).runs >= 2 &&
                 !measurements_.beats(chosen, point, since);
        });
    if (cheaper == cheapest_first.end() || *cheaper == chosen) return chosen;
    chosen = *cheaper;
  }
}

void Search::search_prefetch() {
  const double since =
      measurements_.begin(deadline_after(workers_settings(goal_.max_workers) + prefetch_settings));
  const std::size_t ample = chosen_;
  const auto point_with = [&](std::size_t prefetch) {
    TuneSetting setting = measurements_.setting(ample);
    setting.prefetch = prefetch;
    return measurements_.point(setting);
  };
  std::vector<std::size_t> tried;
  const std::optional<std::size_t> found = smallest(ample_prefetch, [&](std::size_t prefetch) {
    if (prefetch == ample_prefetch) return true;
    tried.push_back(point_with(prefetch));
    if (feeds_) return measurements_.judge(tried.back()) == Feeds::yes;
    // Only what was measured can be within noise.
    return !measurements_.beats(ample, tried.back(), since) &&
           measurements_.summary(tried.back(), since).runs >= 2;
  });
  tried.push_back(ample);
  std::sort(tried.begin(), tried.end(), [&](std::size_t a, std::size_t b) {
    return measurements_.setting(a).prefetch < measurements_.setting(b).prefetch;
  });
  std::erase_if(tried,
                [&](std::size_t point) { return measurements_.points()[point].runs.empty(); });
  chosen_ = point_with(*found);
  if (!feeds_ && !measurements_.refused()) chosen_ = cheapest_within_noise(chosen_, tried, since);
  end_phase(TuneVariable::prefetch, tried);
}

std::string Search::micro_batches_gain(std::size_t current, std::size_t more, double since) {
  const TuneSummary one = measurements_.summary(current, since);
  const TuneSummary other = measurements_.summary(more, since);
  if (feeds_ && feeds_step(other) != Feeds::yes) return {};
  if (compare_rates(other, one).higher) return "throughput";
  // Idle shares that are all but 0 do not get better.
  if (one.device_idle && one.device_idle->mean > fed_idle && other.device_idle &&
      compare(*one.device_idle, one.runs, *other.device_idle, other.runs).higher)
    return "the device's idle time";
  Mean earlier = one.first_batch_ms;
  earlier.mean *= 1 - least_start_gain;
  if (compare(earlier, one.runs, other.first_batch_ms, other.runs).higher)
    return "the time to the first batch";
  return {};
}

void Search::search_micro_batches() {
  const double since = measurements_.begin(deadline_after(
      workers_settings(goal_.max_workers) + prefetch_settings + micro_batches_settings));
  std::vector<std::size_t> tried = {chosen_};
  std::string gained;
  for (std::size_t parts = 2; parts <= std::min(goal_.batch_size, most_micro_batches); parts *= 2) {
    TuneSetting setting = measurements_.setting(chosen_);
    setting.micro_batches = parts;
    const std::size_t more = measurements_.point(setting);
    const std::array both = {chosen_, more};
    if (measurements_.run_in_turn(both, few_runs, since)) tried.push_back(more);
    std::string gain = micro_batches_gain(chosen_, more, since);
    // One of several comparisons may come out well by chance: it must do so again with more runs.
    if (!gain.empty() && measurements_.run_in_turn(both, most_runs, since))
      gain = micro_batches_gain(chosen_, more, since);
    if (gain.empty() || measurements_.refused()) break;
    chosen_ = more;
    gained = gain;
  }
  end_phase(TuneVariable::micro_batches, tried);
  findings_.phases.back().gained = gained;
}

void Search::search_batch_size() {
  const double since = measurements_.begin(goal_.budget_seconds);
  const BatchSizeFindings found = BatchSizeSearch(goal_, measurements_, chosen_, feeds_).run(since);
  chosen_ = found.chosen;
  if (!found.fits) findings_.outcome = TuneOutcome::nothing_fits;
  end_phase(TuneVariable::batch_size, found.tried);
  findings_.phases.back().why = found.why;
}

void Search::end_phase(TuneVariable variable, std::vector<std::size_t> points) {
  if (measurements_.refused())
    findings_.not_measured.push_back(not_measured_text(variable, measurements_.setting(chosen_)));
  findings_.phases.push_back(
      {.variable = variable, .points = std::move(points), .chosen = chosen_});
}

TuneFindings Search::finish() {
  findings_.run_seconds = planned_run();
  findings_.chosen = measurements_.setting(chosen_);
  findings_.chosen_point = chosen_;
  findings_.points = measurements_.take();
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
