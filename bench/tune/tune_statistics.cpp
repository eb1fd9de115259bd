// SPDX-License-Identifier: Apache-2.0
#include "tune/tune_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace millrace::cli {
namespace {

/// A single run has no noise that is known: it must be this much higher.
constexpr double gain_of_one_run = 0.2;

template <typename Get>
Mean mean_of(const std::vector<const TuneRun*>& runs, Get get) {
  Mean result;
  if (runs.empty()) return result;
  const auto count = static_cast<double>(runs.size());
  for (const TuneRun* run : runs) result.mean += get(*run) / count;
  if (runs.size() < 2) return result;
  for (const TuneRun* run : runs) result.sd += std::pow(get(*run) - result.mean, 2) / (count - 1);
  result.sd = std::sqrt(result.sd);
  return result;
}

/// By nearest rank.
double percentile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace

std::vector<const TuneRun*> counting_runs(std::span<const TuneRun> runs, double since_seconds) {
  std::vector<const TuneRun*> all;
  std::vector<const TuneRun*> quiet;
  for (const TuneRun& run : runs) {
    if (run.at_seconds < since_seconds) continue;
    all.push_back(&run);
    if (run.disturbed <= disturbed_share) quiet.push_back(&run);
  }
  return quiet.size() >= few_runs ? quiet : all;
}

double student_t(double degrees_of_freedom, Confidence confidence) {
  // For 1, 2, 3 ... degrees of freedom.
  constexpr std::array<double, 12> at_95 = {6.314, 2.920, 2.353, 2.132, 2.015, 1.943,
                                            1.895, 1.860, 1.833, 1.812, 1.796, 1.782};
  constexpr std::array<double, 12> at_99 = {31.821, 6.965, 4.541, 3.747, 3.365, 3.143,
                                            2.998,  2.896, 2.821, 2.764, 2.718, 2.681};
  const bool is_95 = confidence == Confidence::percent_95;
  const auto& quantiles = is_95 ? at_95 : at_99;
  const double of_normal = is_95 ? 1.645 : 2.326;
  if (!(degrees_of_freedom >= 1)) return quantiles[0];
  const double whole = std::floor(degrees_of_freedom);
  constexpr auto last = static_cast<double>(at_95.size());
  if (whole <= last) return quantiles[static_cast<std::size_t>(whole) - 1];
  return of_normal + (quantiles.back() - of_normal) * last / whole;
}

TuneSummary summarise(std::span<const TuneRun> runs, double since_seconds) {
  const std::vector<const TuneRun*> counting = counting_runs(runs, since_seconds);
  TuneSummary summary;
  summary.runs = counting.size();
  summary.disturbed = static_cast<std::size_t>(
      std::count_if(counting.begin(), counting.end(),
                    [](const TuneRun* run) { return run->disturbed > disturbed_share; }));
  for (const TuneRun& run : runs) {
    if (run.at_seconds < since_seconds) continue;
    ++summary.set_aside;
    summary.memory_bytes = std::max(summary.memory_bytes, run.memory_bytes());
  }
  summary.set_aside -= counting.size();
  if (counting.empty()) return summary;
  summary.samples_per_second =
      mean_of(counting, [](const TuneRun& run) { return run.samples_per_second; });
  summary.stall_share = mean_of(counting, [](const TuneRun& run) { return run.stall_share; });
  summary.first_batch_ms = mean_of(counting, [](const TuneRun& run) { return run.first_batch_ms; });
  std::vector<double> batch_ms;
  for (const TuneRun* run : counting)
    batch_ms.insert(batch_ms.end(), run->batch_ms.begin(), run->batch_ms.end());
  std::sort(batch_ms.begin(), batch_ms.end());
  summary.batch_p50_ms = percentile(batch_ms, 0.50);
  summary.batch_p95_ms = percentile(batch_ms, 0.95);
  summary.batch_p99_ms = percentile(batch_ms, 0.99);
  if (!counting.front()->device_idle) return summary;
  const Mean idle =
      mean_of(counting, [](const TuneRun& run) { return run.device_idle.value_or(0); });
  summary.device_idle = idle;
  if (counting.size() < 2) return summary;
  const double n = static_cast<double>(counting.size());
  const double bound = student_t(n - 1, Confidence::percent_95) * idle.sd / std::sqrt(n);
  summary.idle_low = std::max(0.0, idle.mean - bound);
  summary.idle_high = std::min(1.0, idle.mean + bound);
  return summary;
}

Feeds feeds_step(const TuneSummary& summary) {
  if (!summary.device_idle) return Feeds::no_step;
  if (summary.runs >= few_runs && summary.idle_high <= fed_idle) return Feeds::yes;
  const bool enough = summary.disturbed == 0 ? summary.runs >= 2 : summary.runs >= most_runs;
  if (enough && summary.idle_low > fed_idle) return Feeds::no;
  return Feeds::unsure;
}

Comparison compare(Mean first, std::size_t first_runs, Mean second, std::size_t second_runs) {
  if (first_runs == 0 || second_runs == 0) return {};
  if (first_runs < 2 || second_runs < 2)
    return {.higher = first.mean > (1 + gain_of_one_run) * second.mean};
  const double first_variance = first.sd * first.sd / static_cast<double>(first_runs);
  const double second_variance = second.sd * second.sd / static_cast<double>(second_runs);
  const double variance = first_variance + second_variance;
  const double freedom =
      variance > 0 ? variance * variance /
                         (first_variance * first_variance / static_cast<double>(first_runs - 1) +
                          second_variance * second_variance / static_cast<double>(second_runs - 1))
                   : std::numeric_limits<double>::infinity();
  const auto noise = [&](Confidence confidence) {
    return variance > 0 ? student_t(freedom, confidence) * std::sqrt(variance) : 0;
  };
  const double gain = first.mean - second.mean;
  const bool higher = gain > noise(Confidence::percent_99) && gain > least_gain * second.mean;
  return {
      .higher = higher,
      .certain = higher || gain + noise(Confidence::percent_95) <= 1.5 * least_gain * second.mean};
}

Comparison compare_rates(const TuneSummary& first, const TuneSummary& second) {
  return compare(first.samples_per_second, first.runs, second.samples_per_second, second.runs);
}

}  // namespace millrace::cli
