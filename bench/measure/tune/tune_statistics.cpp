// SPDX-License-Identifier: Apache-2.0
#include "measure/tune/tune_statistics.h"

#include <algorithm>
#include <boost/math/statistics/univariate_statistics.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace millrace::cli {
namespace {

using Runs = std::vector<const TuneRun*>;

bool is_disturbed(const TuneRun* run) { return run->disturbed > disturbed_share; }

Mean mean_of(const std::vector<double>& values) {
  const double variance = values.size() < 2 ? 0 : boost::math::statistics::sample_variance(values);
  return {.mean = boost::math::statistics::mean(values), .sd = std::sqrt(variance)};
}

template <typename Figure>
Mean mean_of(const Runs& runs, Figure figure) {
  std::vector<double> values;
  for (const TuneRun* run : runs) values.push_back(std::invoke(figure, *run));
  return mean_of(values);
}

/// Returns the percentile by nearest rank.
double percentile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

using Pair = std::pair<const TuneRun*, const TuneRun*>;
using Pairs = std::vector<Pair>;

/// Returns pairs of runs, one for each round in which both settings ran.
Pairs pairs_of(std::span<const TuneRun> first, std::span<const TuneRun> second) {
  Pairs pairs;
  for (const TuneRun& run : first)
    if (const auto other = std::ranges::find(second, run.round, &TuneRun::round);
        other != second.end())
      pairs.emplace_back(&run, &*other);
  return pairs;
}

/// Returns only the pairs of undisturbed runs if there are enough of them; else all pairs.
Pairs counting_pairs(const Pairs& all) {
  Pairs quiet = all;
  std::erase_if(quiet, [](const Pair& pair) {
    return is_disturbed(pair.first) || is_disturbed(pair.second);
  });
  return quiet.size() >= few_runs ? quiet : all;
}

std::uint64_t batches_of(const Runs& runs) {
  return std::accumulate(runs.begin(), runs.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const TuneRun* run) { return sum + run->batches; });
}

template <typename Figure>
Gain gain_of(const Pairs& pairs, Figure figure) {
  if (pairs.empty()) return {};
  std::vector<double> differences;
  double sum = 0;
  for (const auto& [run, other] : pairs) {
    differences.push_back(figure(*run) - figure(*other));
    sum += figure(*other);
  }
  const auto rounds = static_cast<double>(pairs.size());
  const double unit = std::max(sum / rounds, std::numeric_limits<double>::min());
  const Mean difference = mean_of(differences);
  return {.mean = difference.mean / unit,
          .standard_error = difference.sd / std::sqrt(rounds) / unit,
          .rounds = pairs.size()};
}

}  // namespace

std::vector<const TuneRun*> counting_runs(std::span<const TuneRun> runs) {
  Runs all;
  for (const TuneRun& run : runs) all.push_back(&run);
  Runs quiet = all;
  std::erase_if(quiet, is_disturbed);
  return quiet.size() >= few_runs ? quiet : all;
}

TuneSummary summarise(std::span<const TuneRun> runs) {
  const Runs counting = counting_runs(runs);
  TuneSummary summary;
  if (counting.empty()) return summary;
  summary.runs = counting.size();
  summary.disturbed = static_cast<std::size_t>(std::ranges::count_if(counting, is_disturbed));
  summary.set_aside = runs.size() - counting.size();
  summary.batches = batches_of(counting);
  for (const TuneRun& run : runs)
    summary.memory_bytes = std::max(summary.memory_bytes, run.memory_bytes());
  summary.samples_per_second = mean_of(counting, &TuneRun::samples_per_second);
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
  const double bound = student_t(static_cast<double>(summary.runs - 1), 0.95) * idle.sd /
                       std::sqrt(static_cast<double>(summary.runs));
  summary.idle_low = std::max(0.0, idle.mean - bound);
  summary.idle_high = std::min(1.0, idle.mean + bound);
  return summary;
}

Feeds feeds_step(const TuneSummary& summary) {
  if (!summary.device_idle) return Feeds::no_step;
  if (summary.batches < fewest_judged_batches) return Feeds::unsure;
  if (summary.runs >= few_runs && summary.idle_high <= fed_idle) return Feeds::yes;
  const bool enough = summary.runs >= (summary.disturbed == 0 ? 2 : max_disturbed_runs);
  return enough && summary.idle_low > fed_idle ? Feeds::no : Feeds::unsure;
}

double Gain::noise() const {
  if (rounds < 2 || !has_enough_batches) return std::numeric_limits<double>::infinity();
  return standard_error * student_t(static_cast<double>(rounds - 1), 0.995);
}

Gain throughput_gain(std::span<const TuneRun> first, std::span<const TuneRun> second,
                     bool counts_fed) {
  Pairs pairs = pairs_of(first, second);
  std::erase_if(pairs, [&](const Pair& pair) {
    return !counts_fed && pair.first->device_idle == 0.0 && pair.second->device_idle == 0.0;
  });
  pairs = counting_pairs(pairs);
  Gain gain = gain_of(pairs, [](const TuneRun& run) { return run.samples_per_second; });
  Runs firsts;
  Runs seconds;
  for (const auto& [run, other] : pairs) {
    firsts.push_back(run);
    seconds.push_back(other);
  }
  gain.has_enough_batches =
      std::min(batches_of(firsts), batches_of(seconds)) >= fewest_judged_batches;
  return gain;
}

Gain start_gain(std::span<const TuneRun> first, std::span<const TuneRun> second) {
  return gain_of(counting_pairs(pairs_of(first, second)),
                 [](const TuneRun& run) { return 1 / std::max(run.first_batch_ms, 1e-3); });
}

}  // namespace millrace::cli
