// SPDX-License-Identifier: Apache-2.0
#include "tune/tune_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "console/text.h"
#include "tune/tune_statistics.h"
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
/// About how many settings are tried for each variable. The budget is shared out by these numbers;
/// what one variable leaves over is for the next ones.
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

using Points = std::vector<std::size_t>;

/// 1, 2, 4 ... below `most`, then `most`.
std::vector<std::size_t> doubling(std::size_t most) {
  std::vector<std::size_t> values;
  for (std::size_t value = 1; value < most; value *= 2) values.push_back(value);
  values.push_back(most);
  return values;
}

/// Neighbours closer than this are as good as one: 1 up to 31, then a sixteenth.
std::size_t resolution(std::size_t value) { return std::max<std::size_t>(1, value / 16); }

/// The smallest value up to `most` that `fits`, given that larger ones fit as well; nullopt if
/// `most` does not fit.
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
  Search(const TuneGoal& goal, const TuneProbe& probe);
  TuneFindings run();

 private:
  /// Begins with a variable that should try about so many settings.
  void begin(double settings) {
    settings_begun_ += settings;
    measured_.begin(goal_.budget_seconds * settings_begun_ / settings_);
  }
  const TuneSetting& setting(std::size_t point) const { return measured_.setting(point); }
  TuneSummary summary(std::size_t point) const { return measured_.summary(point); }
  /// The point of a setting that differs from `base` in one value.
  std::size_t point_with(std::size_t base, std::size_t TuneSetting::*variable, std::size_t value) {
    TuneSetting changed = setting(base);
    changed.*variable = value;
    changed.micro_batches = std::min(changed.micro_batches, changed.batch_size);
    return measured_.point(changed);
  }
  /// Goes down to the cheapest point that is within noise of `chosen`, as often as there is one.
  std::size_t cheapest_within_noise(std::size_t chosen, const Points& cheapest_first);

  void search_workers();
  std::size_t workers_point(std::size_t workers);
  Points measured_workers() const;
  std::size_t knee_of_measured() const;
  void fit_workers();
  void refine_knee();

  void search_prefetch();
  void search_micro_batches();
  std::string micro_batches_gain(std::size_t current, std::size_t more) const;
  void search_batch_size();
  /// How the search over batch sizes went.
  struct BatchSizes {
    /// The point that was found before.
    std::size_t base = 0;
    Points tried{};
    /// Why it went no further; empty if nothing stopped it.
    std::string limit{};
  };
  /// 0 if none keeps within the limits.
  std::size_t largest_within_limits(BatchSizes& sizes);
  std::size_t largest_that_gains(BatchSizes& sizes);
  /// Why a batch size does not fit; empty if it does.
  std::string misfit(BatchSizes& sizes, std::size_t batch_size);

  TunePhase& end(TuneVariable variable, Points points);
  TuneFindings finish();

  const TuneGoal& goal_;
  const TuneProbe& probe_;
  const bool batch_size_is_searched_;
  /// How many settings are about tried, for all variables and for those that have begun.
  const double settings_;
  double settings_begun_ = 0;
  Measurements measured_;
  TuneFindings findings_;
  /// The best point so far, and whether it feeds the step.
  std::size_t chosen_ = 0;
  bool feeds_ = false;
};

Search::Search(const TuneGoal& goal, const TuneProbe& probe)
    : goal_(goal),
      probe_(probe),
      batch_size_is_searched_(goal.tune_batch_size || goal.p99_ms || goal.memory_bytes),
      settings_(workers_settings(goal.max_workers) + prefetch_settings + micro_batches_settings +
                (batch_size_is_searched_ ? batch_size_settings : 0)),
      measured_(probe, std::clamp(0.9 * goal.budget_seconds / (usual_runs * settings_),
                                  shortest_run_seconds, longest_run_seconds)) {}

TuneFindings Search::run() {
  search_workers();
  search_prefetch();
  search_micro_batches();
  if (batch_size_is_searched_) search_batch_size();
  return finish();
}

std::size_t Search::cheapest_within_noise(std::size_t chosen, const Points& cheapest_first) {
  // Each round ends with a cheaper one, so this ends.
  for (;;) {
    const auto cheaper = std::ranges::find_if(cheapest_first, [&](std::size_t point) {
      // A single run says nothing of the noise: there was no time for more.
      return point == chosen || (summary(point).runs >= 2 && !measured_.beats(chosen, point));
    });
    if (cheaper == cheapest_first.end() || *cheaper == chosen) return chosen;
    chosen = *cheaper;
  }
}

void Search::search_workers() {
  begin(workers_settings(goal_.max_workers));
  std::optional<std::size_t> feeding;
  if (goal_.step_ms > 0)
    feeding = smallest(goal_.max_workers, [&](std::size_t workers) {
      return measured_.judge(workers_point(workers)) == Feeds::yes;
    });
  feeds_ = feeding.has_value();
  if (feeding) {
    chosen_ = workers_point(*feeding);
  } else {
    Points powers;
    for (const std::size_t workers : doubling(goal_.max_workers))
      powers.push_back(workers_point(workers));
    measured_.run_in_turn(powers, few_runs);
    refine_knee();
    chosen_ = cheapest_within_noise(knee_of_measured(), measured_workers());
  }
  fit_workers();
  end(TuneVariable::workers, measured_workers());
}

std::size_t Search::workers_point(std::size_t workers) {
  return measured_.point({.workers = static_cast<unsigned>(workers),
                          .prefetch = ample_prefetch,
                          .batch_size = goal_.batch_size});
}

Points Search::measured_workers() const {
  Points all(measured_.points().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return measured_.ascending(std::move(all), TuneVariable::workers);
}

std::size_t Search::knee_of_measured() const {
  const Points points = measured_workers();
  const auto rate = [&](std::size_t point) { return summary(point).samples_per_second.mean; };
  const double best = rate(*std::ranges::max_element(points, {}, rate));
  return *std::ranges::find_if(points,
                               [&](std::size_t point) { return rate(point) >= knee_share * best; });
}

void Search::fit_workers() {
  std::vector<ScalingPoint> rates;
  for (const std::size_t point : measured_workers()) {
    if (feeds_step(summary(point)) == Feeds::yes) continue;  // the step held its rate down
    for (const TuneRun* run : counting_runs(measured_.points()[point].runs))
      rates.push_back({static_cast<double>(setting(point).workers), run->samples_per_second});
  }
  findings_.fit = fit_usl(rates);
  findings_.knee = usl_knee(findings_.fit, goal_.max_workers, knee_share);
}

void Search::refine_knee() {
  fit_workers();
  std::size_t next = findings_.knee;
  while (measured_.run_in_turn({workers_point(next)}, few_runs)) {
    fit_workers();
    const std::size_t high = setting(knee_of_measured()).workers;
    std::size_t low = 0;
    for (const std::size_t point : measured_workers())
      if (setting(point).workers < high) low = setting(point).workers;
    if (high - low <= resolution(low)) return;
    next = findings_.knee > low && findings_.knee < high ? findings_.knee : (low + high) / 2;
  }
}

void Search::search_prefetch() {
  begin(prefetch_settings);
  const std::size_t ample = chosen_;
  Points tried = {ample};
  const std::optional<std::size_t> found = smallest(ample_prefetch, [&](std::size_t prefetch) {
    if (prefetch == ample_prefetch) return true;
    const std::size_t less = point_with(ample, &TuneSetting::prefetch, prefetch);
    tried.push_back(less);
    if (feeds_) return measured_.judge(less) == Feeds::yes;
    // Only what was measured can be within noise.
    return !measured_.beats(ample, less) && summary(less).runs >= 2;
  });
  tried = measured_.ascending(std::move(tried), TuneVariable::prefetch);
  chosen_ = point_with(ample, &TuneSetting::prefetch, *found);
  if (!feeds_ && !measured_.refused()) chosen_ = cheapest_within_noise(chosen_, tried);
  end(TuneVariable::prefetch, std::move(tried));
}

void Search::search_micro_batches() {
  begin(micro_batches_settings);
  Points tried = {chosen_};
  std::string gained;
  for (std::size_t parts = 2; parts <= std::min(goal_.batch_size, most_micro_batches); parts *= 2) {
    const std::size_t more = point_with(chosen_, &TuneSetting::micro_batches, parts);
    if (measured_.run_in_turn({chosen_, more}, few_runs)) tried.push_back(more);
    std::string gain = micro_batches_gain(chosen_, more);
    // One of several comparisons may come out well by chance: it must do so again with more runs.
    if (!gain.empty() && measured_.run_in_turn({chosen_, more}, most_runs))
      gain = micro_batches_gain(chosen_, more);
    if (gain.empty() || measured_.refused()) break;
    chosen_ = more;
    gained = gain;
  }
  end(TuneVariable::micro_batches, std::move(tried)).gained = gained;
}

std::string Search::micro_batches_gain(std::size_t current, std::size_t more) const {
  const TuneSummary one = summary(current);
  const TuneSummary other = summary(more);
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

void Search::search_batch_size() {
  begin(batch_size_settings);
  const bool limited = goal_.p99_ms || goal_.memory_bytes;
  BatchSizes sizes{.base = chosen_};
  const std::size_t size = limited ? largest_within_limits(sizes) : largest_that_gains(sizes);
  sizes.tried = measured_.ascending(std::move(sizes.tried), TuneVariable::batch_size);
  std::string why;
  if (size > 0) {
    chosen_ = point_with(sizes.base, &TuneSetting::batch_size, size);
    why = fmt::format("Batches of {}{}", count_text(size, "sample"),
                      limited ? " keep within " + limits_text(goal_) : "");
  } else {
    if (!sizes.tried.empty()) chosen_ = sizes.tried.front();
    findings_.outcome = TuneOutcome::nothing_fits;
    why = "No batch size keeps within " + limits_text(goal_);
  }
  if (!sizes.limit.empty()) why += (size > 0 && limited ? "; " : ": ") + sizes.limit;
  end(TuneVariable::batch_size, std::move(sizes.tried)).why = why + ".";
}

std::size_t Search::largest_within_limits(BatchSizes& sizes) {
  // A size that fits and a larger one that does not; 0 as long as there is none.
  std::size_t low = 0;
  std::size_t high = 0;
  std::size_t next = goal_.batch_size;
  while (next > 0 && (high == 0 || !measured_.refused())) {
    std::string problem = misfit(sizes, next);
    (problem.empty() ? low : high) = next;
    if (high == 0 || high == next) sizes.limit = std::move(problem);
    if (high == 0)
      next = low < goal_.most_batch_size ? std::min(2 * low, goal_.most_batch_size) : 0;
    else if (low == 0)
      next = high / 2;
    else
      next = high > low + std::max<std::size_t>(1, low / 8) ? (low + high) / 2 : 0;
  }
  return low;
}

std::size_t Search::largest_that_gains(BatchSizes& sizes) {
  sizes.tried.push_back(sizes.base);
  std::size_t size = goal_.batch_size;
  while (size < goal_.most_batch_size) {
    const std::size_t more = std::min(2 * size, goal_.most_batch_size);
    sizes.limit = misfit(sizes, more);
    if (sizes.limit.empty() &&
        !measured_.beats(point_with(sizes.base, &TuneSetting::batch_size, more),
                         point_with(sizes.base, &TuneSetting::batch_size, size)))
      sizes.limit = fmt::format("{} samples are made at no higher rate", more);
    if (!sizes.limit.empty()) break;
    size = more;
  }
  return size;
}

std::string Search::misfit(BatchSizes& sizes, std::size_t batch_size) {
  const auto megabytes = [](double bytes) { return fmt::format("{:.0f} MB", bytes / 1e6); };
  const std::size_t most_bytes =
      std::min(goal_.most_memory_bytes, goal_.memory_bytes.value_or(SIZE_MAX));
  const double expected_bytes =
      static_cast<double>(summarise(measured_.points()[sizes.base].runs).memory_bytes) *
      static_cast<double>(batch_size) / static_cast<double>(goal_.batch_size);
  // Known without a run; the scratch does not grow with the batch, so a little above may still fit.
  if (expected_bytes > 1.5 * static_cast<double>(most_bytes))
    return fmt::format("{} samples take about {}", batch_size, megabytes(expected_bytes));
  const std::size_t point = point_with(sizes.base, &TuneSetting::batch_size, batch_size);
  measured_.run_in_turn({point}, few_runs);
  const TuneSummary measured = summary(point);
  if (measured.runs == 0) return fmt::format("{} samples could not be tried in time", batch_size);
  if (std::ranges::find(sizes.tried, point) == sizes.tried.end()) sizes.tried.push_back(point);

  if (goal_.p99_ms && measured.batch_p99_ms > *goal_.p99_ms)
    return fmt::format("{} samples take {:.1f} ms at the 99th percentile", batch_size,
                       measured.batch_p99_ms);
  if (measured.memory_bytes > most_bytes)
    return fmt::format("{} samples take {}", batch_size,
                       megabytes(static_cast<double>(measured.memory_bytes)));
  if (feeds_ && measured_.judge(point) != Feeds::yes)
    return fmt::format("{} samples do not feed the step", batch_size);
  if (!feeds_ && point != sizes.base && measured_.beats(sizes.base, point))
    return fmt::format("{} samples are made at a lower rate", batch_size);
  return {};
}

TunePhase& Search::end(TuneVariable variable, Points points) {
  if (measured_.refused())
    findings_.not_measured.push_back(not_measured_text(variable, setting(chosen_)));
  return findings_.phases.emplace_back(
      TunePhase{.variable = variable, .points = std::move(points), .chosen = chosen_});
}

TuneFindings Search::finish() {
  findings_.run_seconds = measured_.run_seconds();
  findings_.chosen = setting(chosen_);
  findings_.chosen_point = chosen_;
  findings_.points = measured_.take();
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
