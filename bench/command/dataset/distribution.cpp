// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace millrace::cli {
namespace {

using Counts = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

constexpr std::size_t max_bins = 10;

/// Returns the smallest number such that at least `share` of all numbers are at or below it.
std::uint64_t quantile(const Counts& counts, std::uint64_t total, double share) {
  const auto rank = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(total)));
  std::uint64_t passed = 0;
  for (const auto& [number, count] : counts)
    if ((passed += count) >= std::max<std::uint64_t>(rank, 1)) return number;
  return counts.back().first;
}

std::uint64_t total_of(const Counts& counts) {
  std::uint64_t total = 0;
  for (const auto& [number, count] : counts) total += count;
  return total;
}

std::uint64_t rounded(double number) { return static_cast<std::uint64_t>(std::llround(number)); }

/// Returns limits of bins, `step` apart. The first is at or below `low`, the last above `high`.
std::vector<std::uint64_t> even_limits(std::uint64_t low, std::uint64_t high, std::uint64_t step) {
  std::vector<std::uint64_t> limits;
  for (std::uint64_t limit = low / step * step; limits.empty() || limits.back() <= high;
       limit += step)
    limits.push_back(limit);
  return limits;
}

/// Does the same with limits at these mantissas times each power of ten.
std::vector<std::uint64_t> growing_limits(std::uint64_t low, std::uint64_t high,
                                          std::span<const double> mantissas) {
  std::vector<std::uint64_t> limits;
  for (double power = 1; power < 1e18; power *= 10)
    for (const double mantissa : mantissas) {
      const std::uint64_t limit = rounded(mantissa * power);
      if (limit <= low) limits.clear();
      if (limits.empty() || limit > limits.back()) limits.push_back(limit);
      if (limit > high) return limits;
    }
  return limits;
}

std::vector<std::uint64_t> round_limits(std::uint64_t low, std::uint64_t high) {
  // Reserves one bin at each end for outliers.
  constexpr std::size_t max_limit_count = max_bins - 1;
  if (high < 4 * low || high < 10) {
    for (std::uint64_t power = 1;; power *= 10)
      for (const std::uint64_t step : {power, 2 * power, 5 * power})
        if ((high - low) / step < max_limit_count)
          if (auto limits = even_limits(low, high, step); limits.size() <= max_limit_count)
            return limits;
  }
  constexpr double tenth[] = {1};
  constexpr double third[] = {1, 3};
  constexpr double usual[] = {1, 2, 5};
  constexpr double fine[] = {1, 1.5, 2, 3, 5, 7};
  constexpr double finest[] = {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8};
  for (const std::span<const double> mantissas :
       {std::span<const double>(finest), std::span<const double>(fine),
        std::span<const double>(usual), std::span<const double>(third)})
    if (auto limits = growing_limits(low, high, mantissas); limits.size() <= max_limit_count)
      return limits;
  return growing_limits(low, high, tenth);
}

std::vector<Bin> count_into(const Counts& counts, std::vector<std::uint64_t> limits) {
  if (counts.front().first < limits.front()) limits.insert(limits.begin(), counts.front().first);
  if (counts.back().first >= limits.back()) limits.push_back(counts.back().first + 1);
  std::vector<Bin> bins;
  auto at = counts.begin();
  for (std::size_t n = 0; n + 1 < limits.size(); ++n) {
    Bin& bin = bins.emplace_back(Bin{limits[n], limits[n + 1], 0});
    for (; at != counts.end() && at->first < bin.end; ++at) bin.count += at->second;
  }
  return bins;
}

}  // namespace

Counts Distribution::sorted() const {
  Counts counts(counts_.begin(), counts_.end());
  std::ranges::sort(counts);
  return counts;
}

Summary summarize(const Distribution& distribution) {
  const Counts counts = distribution.sorted();
  Summary summary{
      .count = total_of(counts), .min = counts.front().first, .max = counts.back().first};
  summary.p5 = quantile(counts, summary.count, 0.05);
  summary.median = quantile(counts, summary.count, 0.5);
  summary.p95 = quantile(counts, summary.count, 0.95);
  double sum = 0;
  for (const auto& [number, count] : counts)
    sum += static_cast<double>(number) * static_cast<double>(count);
  summary.mean = sum / static_cast<double>(summary.count);
  return summary;
}

std::vector<Bin> bins_of(const Distribution& distribution) {
  const Counts counts = distribution.sorted();
  if (counts.empty()) return {};
  const std::uint64_t total = total_of(counts);
  return count_into(counts,
                    round_limits(quantile(counts, total, 0.01), quantile(counts, total, 0.99)));
}

std::vector<Bin> bins_of(const Distribution& distribution,
                         const std::vector<std::uint64_t>& limits) {
  const Counts counts = distribution.sorted();
  if (counts.empty()) return {};
  std::vector<Bin> bins = count_into(counts, limits);
  const auto filled = [](const Bin& bin) { return bin.count > 0; };
  bins.erase(bins.begin(), std::ranges::find_if(bins, filled));
  while (!filled(bins.back())) bins.pop_back();
  return bins;
}

std::vector<Bar> bars_of(const std::vector<Bin>& bins,
                         const std::function<std::string(std::uint64_t)>& number) {
  std::vector<Bar> bars;
  bars.reserve(bins.size());
  for (const Bin& bin : bins)
    bars.push_back({bin.end - bin.begin == 1 ? number(bin.begin)
                                             : number(bin.begin) + " .. " + number(bin.end),
                    bin.count});
  return bars;
}

std::string chart(const std::string& title, const std::vector<Bar>& bars, std::uint64_t total) {
  constexpr std::size_t widest = 32;
  std::uint64_t most = 1;
  for (const Bar& bar : bars) most = std::max(most, bar.count);
  std::string text = fmt::format("{:<28}{:>10}{:>8}\n", title, "records", "share");
  for (const Bar& bar : bars) {
    const double share =
        total == 0 ? 0 : 100 * static_cast<double>(bar.count) / static_cast<double>(total);
    std::size_t length = static_cast<std::size_t>(
        static_cast<double>(widest) * static_cast<double>(bar.count) / static_cast<double>(most));
    if (bar.count > 0) length = std::max<std::size_t>(length, 1);
    text += fmt::format("  {:<26}{:>10}{:>7.1f}%", bar.name, bar.count, share);
    if (length > 0) text += "  " + std::string(length, '#');
    text += "\n";
  }
  return text;
}

}  // namespace millrace::cli
