// SPDX-License-Identifier: Apache-2.0
#include "page/stall_histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "page/html_page.h"
#include "page/svg_chart.h"

namespace millrace::cli {
namespace {

constexpr double least_ms = 1e-3;
constexpr int bins_per_decade = 10;

std::vector<double> stalls_ms(const TracePicture& picture) {
  std::vector<double> stalls;
  for (const TraceLane& lane : picture.lanes) {
    if (lane.name != "trainer") continue;
    for (const TraceSpan& span : lane.spans)
      if (std::string_view(span.name) == "stall" && span.end_ns > span.begin_ns)
        stalls.push_back(
            std::max(least_ms, static_cast<double>(span.end_ns - span.begin_ns) / 1e6));
  }
  return stalls;
}

double bin_edge(int bin) { return std::pow(10.0, static_cast<double>(bin) / bins_per_decade); }

/// How many stalls lie in each bin, by the bin's number: bin b holds [bin_edge(b), bin_edge(b +
/// 1)).
std::map<int, std::size_t> count_in_bins(const std::vector<double>& stalls) {
  std::map<int, std::size_t> bins;
  for (const double stall : stalls)
    ++bins[static_cast<int>(std::floor(bins_per_decade * std::log10(stall) + 1e-9))];
  return bins;
}

/// Whole decades around all bins, at least two of them.
ChartAxis decades_around(const std::map<int, std::size_t>& bins) {
  const auto decade = [](int bin) {
    return std::floor(static_cast<double>(bin) / bins_per_decade);
  };
  const int low = static_cast<int>(decade(bins.begin()->first));
  const int high = std::max(static_cast<int>(decade(bins.rbegin()->first)) + 1, low + 2);
  ChartAxis axis{.low = std::pow(10.0, low),
                 .high = std::pow(10.0, high),
                 .logarithmic = true,
                 .title = "time waited (logarithmic)"};
  for (int power = low; power <= high; ++power) {
    const double milliseconds = std::pow(10.0, power);
    const bool below = milliseconds < 0.5;
    const bool above = milliseconds > 500;
    axis.ticks.push_back({milliseconds, fmt::format("{:.0f} {}",
                                                    below   ? 1e3 * milliseconds
                                                    : above ? 1e-3 * milliseconds
                                                            : milliseconds,
                                                    below   ? "µs"
                                                    : above ? "s"
                                                            : "ms")});
  }
  return axis;
}

}  // namespace

StallPicture draw_stalls(const TracePicture& picture, const Report& report) {
  const std::vector<double> stalls = stalls_ms(picture);
  // A report may know of waits that a full trace does not.
  if (stalls.empty())
    return {
        .html = {},
        .text = fmt::format("The trace holds no wait for data; by the report, the longest of {} "
                            "batches was waited for {}.",
                            report.batches,
                            report.stall.max_ms > 0 ? duration_text(report.stall.max_ms) : "0 ms")};
  double total_ms = 0;
  for (const double stall : stalls) total_ms += stall;

  const std::map<int, std::size_t> bins = count_in_bins(stalls);
  std::size_t most = 0;
  for (const auto& [bin, count] : bins) most = std::max(most, count);
  const std::string text =
      fmt::format("{} waits for {} batches, {} in all: {} of the time.", stalls.size(),
                  report.batches, duration_text(total_ms),
                  percent_text(report.seconds > 0 ? total_ms / (1e3 * report.seconds) : 0));
  ChartAxis waits = linear_axis("waits", 0, static_cast<double>(most) * 1.3, 5);
  std::erase_if(waits.ticks,
                [](const ChartAxis::Tick& tick) { return tick.value != std::floor(tick.value); });
  SvgChart chart("Histogram of stalls", text, decades_around(bins), waits);
  for (const auto& [bin, count] : bins)
    chart.add_bar(bin_edge(bin), bin_edge(bin + 1), static_cast<double>(count),
                  "kind-stall histogram",
                  fmt::format("{} wait{} of {} to {}", count, count == 1 ? "" : "s",
                              duration_text(bin_edge(bin)), duration_text(bin_edge(bin + 1))));
  for (const auto& [name, value] :
       {std::pair("p50", report.stall.p50_ms), std::pair("p95", report.stall.p95_ms),
        std::pair("p99", report.stall.p99_ms)})
    if (value >= bin_edge(bins.begin()->first))
      chart.add_marker(value, fmt::format("{} of all calls: {}", name, duration_text(value)),
                       "percentile");
  return {.html = chart.svg(), .text = text};
}

}  // namespace millrace::cli
