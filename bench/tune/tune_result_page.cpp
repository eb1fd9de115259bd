// SPDX-License-Identifier: Apache-2.0
#include "tune/tune_result_page.h"

#include <fmt/format.h>

#include "page/machine_table.h"
#include "console/text.h"
#include "tune/tune_text.h"

namespace millrace::cli {
namespace {

constexpr double mega = 1e6;

std::string idle_text(const TuneSummary& summary) {
  return summary.device_idle ? fmt::format("{:.1f}% (≤ {:.1f}%)", 100 * summary.device_idle->mean,
                                           100 * summary.idle_high)
                             : "–";
}

const char* feeds_text(Feeds feeds) {
  switch (feeds) {
    case Feeds::no_step:
      return "";
    case Feeds::yes:
      return "feeds the step";
    case Feeds::no:
      return "does not feed the step";
    case Feeds::unsure:
      return "unsure whether it feeds the step";
  }
  return "";
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
       .detail = fmt::format("{} each", count_text(chosen.micro_batches, "part"))},
      {.name = "Batch size",
       .value = fmt::format("{}", chosen.batch_size),
       .detail = fmt::format("p99 {}, {:.0f} MB", duration_text(summary.batch_p99_ms),
                             static_cast<double>(summary.memory_bytes) / mega)},
      {.name = "Throughput",
       .value = fmt::format("{:.1f}", summary.samples_per_second.mean),
       .unit = "samples/s",
       .detail = fmt::format("± {:.1f}, {}", summary.samples_per_second.sd,
                             count_text(summary.runs, "run"))}};
  if (summary.device_idle)
    numbers.push_back(
        {.name = "Device idle",
         .value = fmt::format("{:.2f}%", 100 * summary.device_idle->mean),
         .detail = fmt::format("at most {:.2f}% with 95% confidence", 100 * summary.idle_high)});
  return numbers;
}

/// The title of a variable's section.
const char* title_of(TuneVariable variable) {
  switch (variable) {
    case TuneVariable::workers:
      return "Workers";
    case TuneVariable::prefetch:
      return "Prefetch";
    case TuneVariable::micro_batches:
      return "Micro-batches";
    case TuneVariable::batch_size:
      return "Batch size";
  }
  return "";
}

PageSection section_of(const TuneFindings& findings, const TunePhase& phase) {
  HtmlTable table{.title = {},
                  .columns = {title_of(phase.variable), "Samples/s", "p50", "p95", "p99",
                              "Device idle", "First batch", "Memory", "Runs", "Note"},
                  .text_columns = 1};
  for (const std::size_t index : phase.points) {
    const TunePoint& point = findings.points[index];
    const TuneSummary& summary = point.summary;
    table.rows.push_back(
        {fmt::format("{}{}", value_of(point.setting, phase.variable),
                     index == phase.chosen ? " (chosen)" : ""),
         mean_text(summary.samples_per_second, 1), duration_text(summary.batch_p50_ms),
         duration_text(summary.batch_p95_ms), duration_text(summary.batch_p99_ms),
         idle_text(summary), duration_text(summary.first_batch_ms.mean),
         fmt::format("{:.0f} MB", static_cast<double>(summary.memory_bytes) / mega),
         fmt::format("{}", summary.runs), feeds_text(point.feeds)});
  }
  return {.title = title_of(phase.variable), .text = phase.why, .body = to_html(table)};
}

HtmlTable settings_of(const TuneResult& result) {
  const TuneGoal& goal = result.goal;
  HtmlTable table{
      .title = "Settings",
      .rows = {{"Dataset", result.dataset},
               {"Records", fmt::format("{}", result.records)},
               {"Recipe", result.recipe_name},
               {"Step", goal.step_ms > 0 ? fmt::format("{:g} ms for a batch of {}", goal.step_ms,
                                                       goal.batch_size)
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

TunePage page_of(const TuneResult& result) {
  const TuneFindings& findings = result.findings;
  const UslFit& fit = findings.fit;
  TunePage page{.dataset = result.dataset,
                .verdict = findings.verdict,
                .numbers = key_numbers(result),
                .chosen_workers = static_cast<double>(findings.chosen.workers),
                .not_measured = findings.not_measured,
                .settings = settings_of(result),
                .machine = machine_table(result.machine, std::nullopt)};
  if (fit.parameters >= 2)
    page.law = SweepLaw{
        .lambda = fit.lambda, .sigma = fit.sigma, .kappa = fit.kappa, .r_squared = fit.r_squared};
  if (result.goal.step_ms > 0)
    page.needed_rate = static_cast<double>(result.goal.batch_size) * 1e3 / result.goal.step_ms;
  for (const TunePhase& phase : findings.phases) {
    if (phase.variable != TuneVariable::workers) {
      page.variables.push_back(section_of(findings, phase));
      continue;
    }
    page.why = phase.why;
    for (const std::size_t index : phase.points) {
      const TunePoint& point = findings.points[index];
      page.points.push_back({.workers = static_cast<double>(point.setting.workers),
                             .mean = point.summary.samples_per_second.mean,
                             .standard_deviation = point.summary.samples_per_second.sd,
                             .runs = point.summary.runs,
                             .note = feeds_text(point.feeds)});
    }
  }
  return page;
}

}  // namespace millrace::cli
