// SPDX-License-Identifier: Apache-2.0
#include "measure/tune/tune_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "measure/text/text.h"
#include "measure/tune/tune_output.h"
#include "measure/tune/tune_text.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

Json lines_of_law(const UslFit& fit, double max_workers) {
  const double end = 1.06 * max_workers;
  Json curve = Json::array();
  constexpr int steps = 200;
  for (int step = 0; step <= steps; ++step) {
    // The scaling law does not hold for less than one worker.
    const double workers = 1 + (end - 1) * step / steps;
    curve.push_back({workers, fit.rate(workers)});
  }
  const Json straight = {{0, 0}, {end, fit.lambda * end}};
  return {
      {{"name", "in proportion to the first worker"}, {"style", "reference"}, {"points", straight}},
      {{"name", "universal scalability law, fitted"}, {"style", "fit"}, {"points", curve}}};
}

Chart sweep_chart(const TuneResult& result, const TunePhase& phase) {
  Json points = Json::array();
  Json errors = Json::array();
  Json texts = Json::array();
  Json measured = {{"name", "mean and standard deviation of the runs"}, {"style", "points"}};
  double max_workers = 1;
  double max_rate = 0;
  for (const std::size_t index : phase.points) {
    const TunePoint& point = result.findings.points[index];
    const Mean rate = point.summary.samples_per_second;
    const std::string workers = count_text(point.setting.workers, "worker");
    max_workers = std::max(max_workers, static_cast<double>(point.setting.workers));
    max_rate = std::max(max_rate, rate.mean + rate.sd);
    if (point.setting.workers == result.findings.chosen.workers) {
      measured["chosen"] = points.size();
      measured["label"] = "chosen: " + workers;
    }
    points.push_back({point.setting.workers, rate.mean});
    errors.push_back(rate.sd);
    texts.push_back(fmt::format(
        "{}: {} samples/s, {}{}", workers, mean_text(rate, 1),
        count_text(point.summary.runs, "run"),
        point.feeds == Feeds::no_step ? "" : fmt::format("; feeds: {}", to_string(point.feeds))));
  }
  measured["points"] = points;
  measured["error"] = errors;
  measured["texts"] = texts;
  Json series =
      result.findings.fit.holds() ? lines_of_law(result.findings.fit, max_workers) : Json::array();
  if (const double needed = result.goal.needed_samples_per_second(); needed > 0) {
    // The needed rate is shown only if it is not far above the measured rates, which would
    // otherwise be shown too small.
    const bool is_shown = needed < 1.5 * max_rate;
    const Json line = {{0, needed}, {1.06 * max_workers, needed}};
    series.push_back({{"name", is_shown ? "what the step takes"
                                        : fmt::format("what the step takes: {:.0f} samples/s, off "
                                                      "the scale",
                                                      needed)},
                      {"style", "needed"},
                      {"points", is_shown ? line : Json::array()}});
  }
  series.push_back(measured);
  return make_chart("lines",
                    {{"x", "workers"}, {"y", "samples/s"}, {"whole_x", true}, {"series", series}});
}

Section section_of(const TuneResult& result, const TunePhase& phase) {
  constexpr const char* titles[] = {"Throughput over workers", "Prefetch", "Micro-batches",
                                    "Batch size", "Share of images for the device"};
  Section section{.title = titles[static_cast<std::size_t>(phase.variable)], .text = phase.why};
  Table table{.rows = table_of(result.findings, phase)};
  for (std::size_t row = 0; row < phase.points.size(); ++row)
    if (phase.points[row] == phase.chosen) table.rows[row + 1][0] += " (chosen)";
  if (phase.variable == TuneVariable::workers) {
    const UslFit& fit = result.findings.fit;
    table.title = "The sweep in numbers";
    table.repeats_chart = true;
    table.rows[0].emplace_back("by the law");
    for (std::size_t row = 0; row < phase.points.size(); ++row) {
      const double workers = result.findings.points[phase.points[row]].setting.workers;
      table.rows[row + 1].push_back(fit.holds() ? fmt::format("{:.1f}", fit.rate(workers)) : "–");
    }
    section.text = law_text(fit);
    section.chart = sweep_chart(result, phase);
  }
  table.head = table.rows.front();
  table.rows.erase(table.rows.begin());
  section.tables.push_back(std::move(table));
  return section;
}

std::vector<KeyNumber> key_numbers(const TuneResult& result) {
  const TuneSetting& chosen = result.findings.chosen;
  const TuneSummary& summary = result.findings.points[result.findings.chosen_point].summary;
  std::vector<KeyNumber> numbers = {
      {.name = "Workers",
       .value = fmt::format("{}", chosen.workers),
       .detail = fmt::format("of at most {}", result.goal.max_workers)},
      {.name = "Prefetch",
       .value = fmt::format("{}", chosen.prefetch),
       .detail = count_text(chosen.micro_batches, "micro-batch") + " each"},
      {.name = "Batch size",
       .value = fmt::format("{}", chosen.batch_size),
       .detail = fmt::format("p99 {}, {:.0f} MB", duration_text(summary.batch_p99_ms),
                             static_cast<double>(summary.memory_bytes) / 1e6)},
      {.name = "Throughput",
       .value = fmt::format("{:.1f}", summary.samples_per_second.mean),
       .unit = "samples/s",
       .detail = fmt::format("± {:.1f}, {}", summary.samples_per_second.sd,
                             count_text(summary.runs, "run"))}};
  if (chosen.device_share)
    numbers.push_back({.name = "Device share",
                       .value = value_text(chosen, TuneVariable::device_share),
                       .detail = "of the images at most, made by the device"});
  if (summary.device_idle)
    numbers.push_back(
        {.name = "Device idle",
         .value = fmt::format("{:.2f}%", 100 * summary.device_idle->mean),
         .detail = fmt::format("at most {:.2f}% with 95% confidence", 100 * summary.idle_high)});
  return numbers;
}

Table settings_table(const TuneResult& result) {
  const TuneGoal& goal = result.goal;
  const double step_ms = result.user_step_ms.value_or(goal.step_ms);
  Table table{
      .title = "Settings",
      .rows = {{"Dataset", result.dataset},
               {"Records", fmt::format("{}", result.records)},
               {"Recipe", result.recipe_name},
               {"Step", step_ms > 0
                            ? fmt::format("{:g} ms for a batch of {}{}", step_ms, goal.batch_size,
                                          result.user_step_ms ? ", the trainer's own" : "")
                            : "none"},
               {"Device", result.device},
               {"Most workers", fmt::format("{}", goal.max_workers)},
               {"Seed", fmt::format("{}", result.seed)},
               {"Budget", fmt::format("{:g} s, {:.1f} s used", goal.budget_seconds,
                                      result.findings.total_seconds)},
               {"Planned length of a run", fmt::format("{:.2f} s", result.findings.run_seconds)}}};
  if (const std::string limits = limits_text(goal); !limits.empty())
    table.rows.push_back({"Limits", limits});
  return table;
}

}  // namespace

Page page_of(const TuneResult& result) {
  const TuneFindings& findings = result.findings;
  Page page{.title = "millrace tune: " + result.dataset,
            .subject = "millrace tune of " + result.dataset,
            .verdict = findings.verdict,
            .advice = findings.phases.front().why,
            .warnings = findings.warnings,
            .numbers = key_numbers(result)};
  for (const TunePhase& phase : findings.phases) page.sections.push_back(section_of(result, phase));
  if (!findings.not_measured.empty())
    page.sections.push_back({.title = "Not measured", .list = findings.not_measured});
  page.sections.push_back({.title = "Settings and machine",
                           .tables = {settings_table(result),
                                      {.title = "Machine", .rows = fact_rows(result.machine)}}});
  return page;
}

}  // namespace millrace::cli
