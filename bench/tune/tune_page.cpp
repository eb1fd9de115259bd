// SPDX-License-Identifier: Apache-2.0
#include "tune/tune_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "page/svg_chart.h"

namespace millrace::cli {
namespace {

double rate(const SweepLaw& law, double workers) {
  return law.lambda * workers /
         (1 + law.sigma * (workers - 1) + law.kappa * workers * (workers - 1));
}

std::string workers_text(double workers) {
  return fmt::format("{:g} worker{}", workers, workers == 1 ? "" : "s");
}

std::string law_text(const SweepLaw& law) {
  std::string text = fmt::format(
      "The universal scalability law fits with {:.1f} samples/s for one worker, contention {:.4f} "
      "and coherency {:.6f} (R² "
      "{:.3f}).",
      law.lambda, law.sigma, law.kappa, law.r_squared);
  if (law.kappa > 0 && law.sigma < 1)
    text += fmt::format(" By it, throughput is highest with {:.0f} workers.",
                        std::max(1.0, std::sqrt((1 - law.sigma) / law.kappa)));
  else if (law.sigma > 0)
    text += fmt::format(" By it, no number of workers gives more than {:.0f} samples/s.",
                        law.lambda / law.sigma);
  return text;
}

/// A mark per worker count that was measured, as far as there is room for them.
ChartAxis workers_axis(double most) {
  ChartAxis axis = linear_axis("workers", 0, most * 1.06, 9);
  std::erase_if(axis.ticks,
                [](const ChartAxis::Tick& tick) { return tick.value != std::floor(tick.value); });
  return axis;
}

std::string detail(const SweepPoint& point) {
  std::string text =
      fmt::format("{}: {:.1f} ± {:.1f} samples/s, {} run{}", workers_text(point.workers),
                  point.mean, point.standard_deviation, point.runs, point.runs == 1 ? "" : "s");
  return point.note.empty() ? text : text + "; " + point.note;
}

std::string draw_sweep(const TunePage& tune) {
  double most_workers = 1;
  double most_rate = 0;
  for (const SweepPoint& point : tune.points) {
    most_workers = std::max(most_workers, point.workers);
    most_rate = std::max(most_rate, point.mean + point.standard_deviation);
  }
  // A rate that is far off would leave no room for what was measured.
  const bool shows_needed = tune.needed_rate && *tune.needed_rate < 1.5 * most_rate;
  if (shows_needed) most_rate = std::max(most_rate, *tune.needed_rate);
  SvgChart chart("Throughput over workers", tune.verdict, workers_axis(most_workers),
                 linear_axis("samples/s", 0, most_rate * 1.1, 6));
  const double end = most_workers * 1.06;
  if (tune.law) {
    const SweepLaw& law = *tune.law;
    chart.add_line({{0, 0}, {end, law.lambda * end}}, "reference");
    std::vector<std::pair<double, double>> curve;
    constexpr int steps = 200;
    for (int step = 0; step <= steps; ++step) {
      const double workers = end * step / steps;
      curve.emplace_back(workers, std::max(0.0, rate(law, workers)));
    }
    chart.add_line(curve, "fit");
  }
  if (shows_needed) chart.add_line({{0, *tune.needed_rate}, {end, *tune.needed_rate}}, "needed");
  for (const SweepPoint& point : tune.points) {
    const bool chosen = point.workers == tune.chosen_workers;
    chart.add_point(point.workers, point.mean, point.standard_deviation,
                    chosen ? "point chosen" : "point", detail(point));
    if (chosen)
      chart.add_label(point.workers, point.mean, "chosen: " + workers_text(point.workers));
  }
  std::string legend =
      "<ul class=\"legend\">\n<li><svg width=\"16\" height=\"22\" aria-hidden=\"true\"><g "
      "class=\"point\"><line x1=\"8\" "
      "x2=\"8\" y1=\"1\" "
      "y2=\"21\"/><circle cx=\"8\" cy=\"11\" r=\"4\"/></g></svg>mean and standard deviation of the "
      "runs</li>\n"
      "<li><svg width=\"16\" height=\"16\" aria-hidden=\"true\"><g class=\"point chosen\"><circle "
      "cx=\"8\" cy=\"8\" "
      "r=\"6\"/></g></svg>"
      "chosen</li>\n";
  const auto line = [&](const char* style, const std::string& text) {
    legend += fmt::format(
        "<li><svg width=\"26\" height=\"10\" aria-hidden=\"true\"><path class=\"{}\" d=\"M0 "
        "5h26\"/></svg>{}</li>\n",
        style, text);
  };
  if (tune.law) {
    line("fit", "universal scalability law, fitted");
    line("reference", "in proportion to the first worker");
  }
  if (shows_needed)
    line("needed", "what the step takes");
  else if (tune.needed_rate)
    line("needed",
         fmt::format("what the step takes: {:.0f} samples/s, off the scale", *tune.needed_rate));
  return legend + "</ul>\n" + chart.svg();
}

HtmlTable sweep_table(const TunePage& tune) {
  HtmlTable table{.title = "The sweep in numbers",
                  .columns = {"Workers", "Samples/s", "Std. deviation", "Runs", "By the law",
                              "Per worker", "Note"},
                  .text_columns = 1};
  for (const SweepPoint& point : tune.points)
    table.rows.push_back(
        {fmt::format("{:g}{}", point.workers,
                     point.workers == tune.chosen_workers ? " (chosen)" : ""),
         fmt::format("{:.1f}", point.mean), fmt::format("{:.1f}", point.standard_deviation),
         fmt::format("{}", point.runs),
         tune.law ? fmt::format("{:.1f}", rate(*tune.law, point.workers)) : "–",
         fmt::format("{:.1f}", point.workers > 0 ? point.mean / point.workers : 0), point.note});
  return table;
}

}  // namespace

std::string to_html(const TunePage& tune) {
  HtmlPage page{.title = "millrace tune: " + tune.dataset,
                .subject = "millrace tune of " + tune.dataset,
                .verdict = tune.verdict,
                .advice = tune.why,
                .numbers = tune.numbers};
  if (!tune.points.empty())
    page.sections.push_back({.title = "Throughput over workers",
                             .text = tune.law ? law_text(*tune.law)
                                              : "Too few worker counts were measured for a curve.",
                             .body = draw_sweep(tune) + to_html(sweep_table(tune))});
  page.sections.insert(page.sections.end(), tune.variables.begin(), tune.variables.end());
  if (!tune.not_measured.empty()) {
    PageSection section{.title = "Not measured", .body = "<ul>\n"};
    for (const std::string& sentence : tune.not_measured)
      section.body += "<li>" + escape(sentence) + "</li>\n";
    section.body += "</ul>\n";
    page.sections.push_back(std::move(section));
  }
  page.sections.push_back({.title = "Settings and machine",
                           .body = "<div class=\"columns\"><div>" + to_html(tune.settings) +
                                   "</div><div>" + to_html(tune.machine) + "</div></div>\n"});
  return to_html(page);
}

}  // namespace millrace::cli
