// SPDX-License-Identifier: Apache-2.0
#include "page/stage_bars.h"

#include <fmt/format.h>

#include <vector>

#include "page/html_page.h"
#include "page/span_style.h"
#include "page/svg_chart.h"

namespace millrace::cli {
namespace {

/// Shares of a stage's time, 0 to 1.
struct Shares {
  double busy = 0;
  double waits_input = 0;
  double waits_output = 0;
};

Shares shares_of(const StageReport& stage, const Report& report) {
  const double lane_seconds = stage.lanes * report.seconds;
  if (lane_seconds <= 0) return {.busy = stage.occupancy};
  return {stage.busy_seconds / lane_seconds, stage.waiting_input_seconds / lane_seconds,
          stage.waiting_output_seconds / lane_seconds};
}

std::string lanes_text(const StageReport& stage) {
  if (stage.name == "copy" || stage.name == "convert" || stage.name == "trainer") return {};
  return stage.lanes == 1 ? "1 worker" : fmt::format("{:.3g} workers", stage.lanes);
}

std::string bar(const std::string& name, const std::string& lanes, const Shares& shares) {
  const bool starves = name == "trainer" || name == "device";
  const std::string busy = percent_text(shares.busy);
  const std::string input = percent_text(shares.waits_input);
  const std::string output = percent_text(shares.waits_output);
  const std::string title = fmt::format("{}: busy {}, waits for input {}, waits for output {}",
                                        name, busy, input, output);
  return fmt::format(
      "<div><p><strong>{}</strong>{}<span>busy {}</span>{}{}</p>\n{}</div>\n", escape(name),
      lanes.empty() ? "" : fmt::format("<span>{}</span>", lanes), busy,
      shares.waits_input >= 0.0005 ? fmt::format("<span>waits for input {}</span>", input) : "",
      shares.waits_output >= 0.0005 ? fmt::format("<span>waits for output {}</span>", output) : "",
      stacked_bar(title,
                  {{span_style(name).css, shares.busy, fmt::format("{}: busy {}", name, busy)},
                   {starves ? "starves" : "waits-input", shares.waits_input,
                    fmt::format("{}: waits for input {}", name, input)},
                   {"waits-output", shares.waits_output,
                    fmt::format("{}: waits for output {}", name, output)}}));
}

std::string swatch(const char* style, const char* text) {
  return fmt::format(
      "<li><svg class=\"bar\" width=\"26\" height=\"14\" aria-hidden=\"true\"><rect class=\"{}\" "
      "width=\"26\" "
      "height=\"14\"/></svg>{}</li>\n",
      style, text);
}

HtmlTable table_of(const Report& report) {
  HtmlTable table{.title = "Stages in numbers",
                  .columns = {"Stage", "Busy", "Waits for input", "Waits for output", "Count",
                              "p50", "p95", "p99", "Longest"}};
  for (const StageReport& stage : report.stages) {
    const Shares shares = shares_of(stage, report);
    table.rows.push_back({stage.name, percent_text(shares.busy), percent_text(shares.waits_input),
                          percent_text(shares.waits_output), fmt::format("{}", stage.each.count),
                          duration_text(stage.each.p50_ms), duration_text(stage.each.p95_ms),
                          duration_text(stage.each.p99_ms), duration_text(stage.each.max_ms)});
  }
  return table;
}

}  // namespace

std::string draw_stages(const Report& report, std::optional<double> device_idle) {
  std::string html =
      "<ul class=\"legend\">\n" + swatch("kind-step", "busy (plain, in the stage&#39;s colour)") +
      swatch("waits-input", "waits for input (stripes)") +
      swatch("starves", "the same of the trainer and the device: what the run loses") +
      swatch("waits-output", "waits for room for its output (dots)") +
      swatch("track", "at something else: a worker runs the other stages too") +
      "</ul>\n<div class=\"bars\">\n";
  for (const StageReport& stage : report.stages)
    html += bar(stage.name, lanes_text(stage), shares_of(stage, report));
  if (device_idle)
    html += bar("device", {}, {.busy = 1 - *device_idle, .waits_input = *device_idle});
  return html + "</div>\n" + to_html(table_of(report));
}

}  // namespace millrace::cli
