// SPDX-License-Identifier: Apache-2.0
#include "measure/tune/tune_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "measure/text/figures.h"
#include "measure/text/text.h"
#include "measure/tune/tune_statistics.h"
#include "measure/tune/tune_text.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr TuneVariable variables[] = {TuneVariable::workers, TuneVariable::prefetch,
                                      TuneVariable::micro_batches, TuneVariable::batch_size,
                                      TuneVariable::device_share};

bool has(const TuneSetting& setting, TuneVariable variable) {
  return variable != TuneVariable::device_share || setting.device_share.has_value();
}

std::string milliseconds(double value) { return fmt::format("{:.1f}", value); }

std::string idle_cell(const TuneSummary& summary) {
  if (!summary.device_idle) return "-";
  const Mean percent = {100 * summary.device_idle->mean, 100 * summary.device_idle->sd};
  return fmt::format("{} (<= {:.1f})", mean_text(percent, 1), 100 * summary.idle_high);
}

/// A column of a table of settings.
struct Column {
  const char* title;
  std::size_t width;
  std::string (*cell)(const TunePoint& point);
};
constexpr std::size_t value_width = 15;
constexpr Column columns[] = {
    {"samples/s", 18, [](const TunePoint& p) { return mean_text(p.summary.samples_per_second); }},
    {"p50 ms", 9, [](const TunePoint& p) { return milliseconds(p.summary.batch_p50_ms); }},
    {"p95 ms", 9, [](const TunePoint& p) { return milliseconds(p.summary.batch_p95_ms); }},
    {"p99 ms", 9, [](const TunePoint& p) { return milliseconds(p.summary.batch_p99_ms); }},
    {"idle % (95%)", 24, [](const TunePoint& p) { return idle_cell(p.summary); }},
    {"feeds", 8,
     [](const TunePoint& p) {
       return std::string(p.feeds == Feeds::no_step ? "-" : to_string(p.feeds));
     }},
    {"first batch ms", 16, [](const TunePoint& p) { return mean_text(p.summary.first_batch_ms); }},
    {"MB", 9,
     [](const TunePoint& p) {
       return fmt::format("{:.0f}", static_cast<double>(p.summary.memory_bytes) / 1e6);
     }},
    {"runs", 8,
     [](const TunePoint& p) {
       return std::to_string(p.summary.runs) +
              (p.summary.set_aside > 0 ? fmt::format(" + {}", p.summary.set_aside) : "");
     }},
};

std::string phase_text(const TuneFindings& findings, const TunePhase& phase) {
  std::string held;
  const TuneSetting& chosen = findings.points[phase.chosen].setting;
  for (const TuneVariable other : variables)
    if (other != phase.variable && has(chosen, other))
      held += fmt::format("{}{} {}", held.empty() ? "" : ", ", to_string(other),
                          value_text(chosen, other));
  std::string text = fmt::format("{} (with {})\n", to_string(phase.variable), held);
  const std::vector<std::vector<std::string>> table = table_of(findings, phase);
  for (std::size_t row = 0; row < table.size(); ++row) {
    const bool is_chosen = row > 0 && phase.points[row - 1] == phase.chosen;
    text += fmt::format("{:>{}}", (is_chosen ? "> " : "") + table[row][0], value_width);
    for (std::size_t cell = 1; cell < table[row].size(); ++cell)
      text += fmt::format("{:>{}}", table[row][cell], columns[cell - 1].width);
    text += '\n';
  }
  return text + "  " + phase.why + "\n\n";
}

/// Returns bars of the measured rates, with a mark at the step's rate.
std::string plot(const TuneResult& result) {
  const TuneFindings& findings = result.findings;
  const std::vector<std::size_t>& points = findings.phases.front().points;
  const double needed = result.goal.needed_samples_per_second();
  constexpr double width = 60;
  double highest = 1;
  for (const std::size_t point : points)
    highest = std::max(highest, findings.points[point].summary.samples_per_second.mean);
  if (needed < 1.5 * highest) highest = std::max(highest, needed);
  const auto column = [&](double rate) {
    return static_cast<std::size_t>(std::lround(std::min(rate / highest, 1.0) * (width - 1)));
  };
  std::string text = "workers and samples/s: # measured";
  text += needed <= 0        ? "\n"
          : needed > highest ? fmt::format("; the step takes {:.0f}, off the scale\n", needed)
                             : ", | what the step takes\n";
  for (const std::size_t index : points) {
    const TunePoint& point = findings.points[index];
    const double rate = point.summary.samples_per_second.mean;
    std::string bar(static_cast<std::size_t>(width), ' ');
    std::fill_n(bar.begin(), column(rate) + 1, '#');
    if (needed > 0 && needed <= highest) bar[column(needed)] = '|';
    text += fmt::format("{:>{}}  {} {:.0f}\n", point.setting.workers, value_width, bar, rate);
  }
  return text;
}

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json mean_json(Mean value) { return {{"mean", value.mean}, {"sd", value.sd}}; }

Json setting_json(const TuneSetting& setting) {
  Json json;
  for (const TuneVariable variable : variables)
    if (variable != TuneVariable::device_share)
      json[to_string(variable)] = value_of(setting, variable);
  if (setting.device_share) json[to_string(TuneVariable::device_share)] = *setting.device_share;
  return json;
}

Json run_json(const TuneRun& run) {
  return {{"round", run.round},
          {"at_seconds", run.at_seconds},
          {"seconds", run.seconds},
          {"batches", run.batches},
          {"samples_per_second", run.samples_per_second},
          {"device_idle", or_null(run.device_idle)},
          {"stall_share", run.stall_share},
          {"first_batch_ms", run.first_batch_ms},
          {"pinned_bytes", run.pinned_bytes},
          {"device_bytes", run.device_bytes},
          {"scratch_bytes", or_null(run.scratch_bytes)},
          {"disturbed", run.disturbed}};
}

Json point_json(const TunePoint& point) {
  const TuneSummary& summary = point.summary;
  const bool stepped = summary.device_idle.has_value();
  Json runs = Json::array();
  for (const TuneRun& run : point.runs) runs.push_back(run_json(run));
  return {{"setting", setting_json(point.setting)},
          {"feeds", to_string(point.feeds)},
          {"runs_counted", summary.runs},
          {"runs_set_aside", summary.set_aside},
          {"samples_per_second", mean_json(summary.samples_per_second)},
          {"batch_ms",
           {{"p50", summary.batch_p50_ms},
            {"p95", summary.batch_p95_ms},
            {"p99", summary.batch_p99_ms}}},
          {"device_idle", stepped ? mean_json(*summary.device_idle) : Json()},
          {"device_idle_low", stepped ? Json(summary.idle_low) : Json()},
          {"device_idle_high", stepped ? Json(summary.idle_high) : Json()},
          {"first_batch_ms", mean_json(summary.first_batch_ms)},
          {"memory_bytes", summary.memory_bytes},
          {"runs", runs}};
}

/// Returns the fit as JSON. Figures that are not valid are null.
Json fit_json(const TuneFindings& findings) {
  const UslFit& fit = findings.fit;
  const auto held = [&](auto value) { return fit.holds() ? Json(value) : Json(); };
  return {
      {"lambda", held(fit.lambda)}, {"sigma", held(fit.sigma)},
      {"kappa", held(fit.kappa)},   {"parameters", fit.parameters},
      {"r_squared", fit.r_squared}, {"peak", std::isfinite(fit.peak()) ? held(fit.peak()) : Json()},
      {"knee", held(findings.knee)}};
}

Json goal_json(const TuneGoal& goal) {
  return {{"step_ms", goal.step_ms},
          {"max_workers", goal.max_workers},
          {"batch_size", goal.batch_size},
          {"tune_batch_size", goal.tune_batch_size},
          {"tune_device_share", goal.tune_device_share},
          {"p99_ms", or_null(goal.p99_ms)},
          {"memory_bytes", or_null(goal.memory_bytes)},
          {"budget_seconds", goal.budget_seconds}};
}

}  // namespace

std::vector<std::vector<std::string>> table_of(const TuneFindings& findings,
                                               const TunePhase& phase) {
  std::vector<std::vector<std::string>> table = {{to_string(phase.variable)}};
  for (const Column& column : columns) table.front().emplace_back(column.title);
  for (const std::size_t index : phase.points) {
    const TunePoint& point = findings.points[index];
    table.push_back({value_text(point.setting, phase.variable)});
    for (const Column& column : columns) table.back().push_back(column.cell(point));
  }
  return table;
}

std::string to_text(const TuneResult& result) {
  const TuneFindings& findings = result.findings;
  const TuneGoal& goal = result.goal;
  std::size_t runs = 0;
  for (const TunePoint& point : findings.points) runs += point.runs.size();
  std::string text =
      fmt::format("{}: {} records, recipe {}, batches of {}", printable(result.dataset),
                  result.records, result.recipe_name, goal.batch_size);
  if (result.user_step_ms)
    text += fmt::format(", the trainer's own step ({:.3f} ms alone)", *result.user_step_ms);
  else if (goal.step_ms > 0)
    text += fmt::format(", a step of {:g} ms ({:.0f} samples/s)", goal.step_ms,
                        goal.needed_samples_per_second());
  text += fmt::format("\n{}, {}; {} of about {:.2g} s in {:.1f} s\n\n", result.machine.cpu,
                      count_text(result.machine.cores, "core"), count_text(runs, "run"),
                      findings.run_seconds, findings.total_seconds);
  for (const TunePhase& phase : findings.phases) {
    text += phase_text(findings, phase);
    if (phase.variable == TuneVariable::workers)
      text += fmt::format("{}  {}\n\n", plot(result), law_text(findings.fit));
  }
  for (const std::string& sentence : findings.not_measured)
    text += "not measured: " + sentence + '\n';
  if (!findings.not_measured.empty())
    text +=
        fmt::format("The budget was {:g} s; --budget-s gives it more.\n\n", goal.budget_seconds);
  for (const std::string& warning : findings.warnings) text += "warning: " + warning + "\n\n";
  return text + findings.verdict + '\n';
}

SavedOptions saved_options(const TuneResult& result) {
  const TuneFindings& findings = result.findings;
  const TuneSetting& chosen = findings.chosen;
  SavedOptions options;
  options.pipeline.batch_size = chosen.batch_size;
  options.pipeline.slots.prefetch = chosen.prefetch;
  options.pipeline.slots.micro_batches = chosen.micro_batches;
  options.workers = chosen.workers;
  options.why = findings.why;
  const double step_ms = result.user_step_ms.value_or(result.goal.step_ms) *
                         static_cast<double>(chosen.batch_size) /
                         static_cast<double>(result.goal.batch_size);
  options.tuned_for = {.dataset = result.dataset,
                       .records = result.records,
                       .recipe = result.recipe,
                       .step_ms = step_ms};
  options.machine = result.machine;
  return options;
}

std::string to_json(const TuneResult& result) {
  const TuneFindings& findings = result.findings;
  Json points = Json::array();
  for (const TunePoint& point : findings.points) points.push_back(point_json(point));
  Json phases = Json::array();
  for (const TunePhase& phase : findings.phases)
    phases.push_back({{"variable", to_string(phase.variable)},
                      {"points", phase.points},
                      {"chosen", phase.chosen},
                      {"why", phase.why}});
  Json machine = facts_json(result.machine);
  machine["memory_bytes"] = result.machine.memory_bytes;
  Json json = {{"dataset", result.dataset},
               {"records", result.records},
               {"recipe", result.recipe_name},
               {"recipe_program", result.recipe.empty() ? Json() : Json::parse(result.recipe)},
               {"device", result.device},
               {"seed", result.seed},
               {"own_step_ms", or_null(result.user_step_ms)},
               {"goal", goal_json(result.goal)},
               {"outcome", to_string(findings.outcome)},
               {"chosen", setting_json(findings.chosen)},
               {"chosen_point", findings.chosen_point},
               {"verdict", findings.verdict},
               {"doubtful", findings.doubtful},
               {"warnings", findings.warnings},
               {"why", findings.why},
               {"not_measured", findings.not_measured},
               {"fit", fit_json(findings)},
               {"phases", phases},
               {"points", points},
               {"run_seconds", findings.run_seconds},
               {"total_seconds", findings.total_seconds},
               {"machine", machine}};
  if (result.user_step_ms) json["own_step_ms"] = *result.user_step_ms;
  return json_text(json);
}

}  // namespace millrace::cli
