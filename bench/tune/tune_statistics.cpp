// SPDX-License-Identifier: Apache-2.0
#include "tune/tune_statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/statistics/univariate_statistics.hpp>
#include <cmath>
#include <functional>
#include <limits>

namespace millrace::cli {
namespace {

using Runs = std::vector<const TuneRun*>;

/// The noise of a single run is not known: it must be higher by this share.
constexpr double gain_of_one_run = 0.2;

bool is_disturbed(const TuneRun* run) { return run->disturbed > disturbed_share; }

template <typename Figure>
Mean mean_of(const Runs& runs, Figure figure) {
  std::vector<double> values;
  for (const TuneRun* run : runs) values.push_back(std::invoke(figure, *run));
  const double variance = values.size() < 2 ? 0 : boost::math::statistics::sample_variance(values);
  return {.mean = boost::math::statistics::mean(values), .sd = std::sqrt(variance)};
}

/// By nearest rank.
double percentile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

/// The variance of a mean, and with its degrees of freedom what Welch's test needs of it.
double variance_of(Mean mean, std::size_t runs) {
  return mean.sd * mean.sd / static_cast<double>(runs);
}

}  // namespace

double student_t(double degrees_of_freedom, double confidence) {
  const boost::math::students_t law(std::max(1.0, std::floor(degrees_of_freedom)));
  return boost::math::quantile(law, confidence);
}

std::vector<const TuneRun*> counting_runs(std::span<const TuneRun> runs, double since_seconds) {
  Runs all;
  for (const TuneRun& run : runs)
    if (run.at_seconds >= since_seconds) all.push_back(&run);
  Runs quiet = all;
  std::erase_if(quiet, is_disturbed);
  return quiet.size() >= few_runs ? quiet : all;
}

TuneSummary summarise(std::span<const TuneRun> runs, double since_seconds) {
  const Runs counting = counting_runs(runs, since_seconds);
  TuneSummary summary;
  if (counting.empty()) return summary;
  summary.runs = counting.size();
  summary.disturbed = static_cast<std::size_t>(std::ranges::count_if(counting, is_disturbed));
  for (const TuneRun& run : runs) {
    if (run.at_seconds < since_seconds) continue;
    ++summary.set_aside;
    summary.memory_bytes = std::max(summary.memory_bytes, run.memory_bytes());
  }
  summary.set_aside -= counting.size();
  summary.samples_per_second = mean_of(counting, &TuneRun::samples_per_second);
  summary.stall_share = mean_of(counting, &TuneRun::stall_share);
  summary.first_batch_ms = mean_of(counting, &TuneRun::first_batch_ms);
  std::vector<double> batch_ms;
  for (const TuneRun* run : counting)
    batch_ms.insert(batch_ms.end(), run->batch_ms.begin(), run->batch_ms.end());
  std::ranges::sort(batch_ms);
  summary.batch_p50_ms = percentile(batch_ms, 0.50);
  summary.batch_p95_ms = percentile(batch_ms, 0.95);
  summary.batch_p99_ms = percentile(batch_ms, 0.99);
  if (!counting.front()->device_idle) return summary;
  const Mean idle =
      mean_of(counting, [](const TuneRun& run) { return run.device_idle.value_or(0); });
  summary.device_idle = idle;
  if (summary.runs < 2) return summary;
  const double bound = student_t(static_cast<double>(summary.runs - 1), 0.95) *
                       std::sqrt(variance_of(idle, summary.runs));
  summary.idle_low = std::max(0.0, idle.mean - bound);
  summary.idle_high = std::min(1.0, idle.mean + bound);
  return summary;
}

Feeds feeds_step(const TuneSummary& summary) {
  if (!summary.device_idle) return Feeds::no_step;
  if (summary.runs >= few_runs && summary.idle_high <= fed_idle) return Feeds::yes;
  const bool enough = summary.runs >= (summary.disturbed == 0 ? 2 : most_runs);
  return enough && summary.idle_low > fed_idle ? Feeds::no : Feeds::unsure;
}

Comparison compare(Mean first, std::size_t first_runs, Mean second, std::size_t second_runs) {
  if (first_runs == 0 || second_runs == 0) return {};
  if (first_runs < 2 || second_runs < 2)
    return {.higher = first.mean > (1 + gain_of_one_run) * second.mean};
  const double first_variance = variance_of(first, first_runs);
  const double second_variance = variance_of(second, second_runs);
  const double variance = first_variance + second_variance;
  // The Welch-Satterthwaite equation.
  const double freedom = variance * variance /
                         (first_variance * first_variance / static_cast<double>(first_runs - 1) +
                          second_variance * second_variance / static_cast<double>(second_runs - 1));
  const auto noise = [&](double confidence) {
    return variance > 0 ? student_t(freedom, confidence) * std::sqrt(variance) : 0;
  };
  const double gain = first.mean - second.mean;
  const bool higher = gain > noise(0.99) && gain > least_gain * second.mean;
  return {.higher = higher,
          .certain = higher || gain + noise(0.95) <= 1.5 * least_gain * second.mean};
}

Comparison compare_rates(const TuneSummary& first, const TuneSummary& second) {
  return compare(first.samples_per_second, first.runs, second.samples_per_second, second.runs);
}

void Measurements::begin(double deadline) {
  since_ = probe_.elapsed();
  deadline_ = deadline;
  refused_ = false;
}

std::size_t Measurements::point(const TuneSetting& setting) {
  const auto found = std::ranges::find(points_, setting, &TunePoint::setting);
  const auto index = static_cast<std::size_t>(found - points_.begin());
  if (found == points_.end()) points_.push_back({.setting = setting});
  return index;
}

std::vector<std::size_t> Measurements::ascending(std::vector<std::size_t> points,
                                                 TuneVariable variable) const {
  std::erase_if(points, [&](std::size_t point) { return points_[point].runs.empty(); });
  std::ranges::sort(points, {},
                    [&](std::size_t point) { return value_of(setting(point), variable); });
  return points;
}

bool Measurements::run(std::size_t point) {
  const double begin = probe_.elapsed();
  refused_ = cost_ && begin + *cost_ > deadline_;
  if (refused_) return false;
  TuneRun made = probe_.measure(setting(point), run_seconds_);
  made.at_seconds = begin;
  cost_ = probe_.elapsed() - begin;
  points_[point].runs.push_back(std::move(made));
  return true;
}

bool Measurements::run_in_turn(const std::vector<std::size_t>& points, std::size_t runs) {
  const auto is_recent = [this](const TuneRun& run) { return run.at_seconds >= since_; };
  for (std::ptrdiff_t round = 1; round <= static_cast<std::ptrdiff_t>(runs); ++round)
    for (const std::size_t point : points)
      if (std::ranges::count_if(points_[point].runs, is_recent) < round && !run(point))
        return false;
  return true;
}

Feeds Measurements::judge(std::size_t point) {
  const std::vector<TuneRun>& runs = points_[point].runs;
  if (runs.empty() && !run(point)) return Feeds::unsure;
  for (;;) {
    const TuneSummary so_far = summarise(runs);
    const Feeds feeds = feeds_step(so_far);
    const bool disturbed = so_far.disturbed + so_far.set_aside > 0;
    const std::size_t most = disturbed ? most_disturbed_runs : most_runs;
    if (feeds != Feeds::unsure || runs.size() >= most || !run(point)) return feeds;
  }
}

bool Measurements::beats(std::size_t first, std::size_t second) {
  for (std::size_t rounds = few_runs;; ++rounds) {
    const bool in_time = run_in_turn({first, second}, rounds);
    const Comparison comparison = compare_rates(summary(first), summary(second));
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
