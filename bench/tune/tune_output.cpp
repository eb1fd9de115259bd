// SPDX-License-Identifier: Apache-2.0
#include "tune/tune_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tune/tune_statistics.h"
#include "tune/tune_text.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double mega = 1e6;

std::string mean_text(Mean value, int digits) {
  return fmt::format("{:.{}f} ± {:.{}f}", value.mean, digits, value.sd, digits);
}

std::string idle_text(const TuneSummary& summary) {
  if (!summary.device_idle) return "-";
  return fmt::format("{} (<= {:.1f})",
                     mean_text({100 * summary.device_idle->mean, 100 * summary.device_idle->sd}, 1),
                     100 * summary.idle_high);
}

/// Pads by characters: "±" is one of two bytes.
std::string right(const std::string& text, std::size_t width) {
  const auto is_start = [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  };
  const auto characters =
      static_cast<std::size_t>(std::count_if(text.begin(), text.end(), is_start));
  return std::string(width - std::min(width, characters), ' ') + text;
}

std::string table_row(std::initializer_list<std::string> cells) {
  constexpr std::size_t widths[] = {15, 18, 9, 9, 9, 24, 8, 16, 9, 8};
  std::string row;
  std::size_t column = 0;
  for (const std::string& cell : cells) row += right(cell, widths[column++]);
  return row + '\n';
}

std::string runs_text(const TuneSummary& summary) {
  return summary.set_aside > 0 ? fmt::format("{} + {}", summary.runs, summary.set_aside)
                               : fmt::format("{}", summary.runs);
}

std::string point_row(const TunePoint& point, TuneVariable variable, bool chosen) {
  const TuneSummary& summary = point.summary;
  return table_row(
      {fmt::format("{}{}", chosen ? "> " : "", value_of(point.setting, variable)),
       mean_text(summary.samples_per_second, 0), fmt::format("{:.1f}", summary.batch_p50_ms),
       fmt::format("{:.1f}", summary.batch_p95_ms), fmt::format("{:.1f}", summary.batch_p99_ms),
       idle_text(summary), point.feeds == Feeds::no_step ? "-" : to_string(point.feeds),
       mean_text(summary.first_batch_ms, 0),
       fmt::format("{:.0f}", static_cast<double>(summary.memory_bytes) / mega),
       runs_text(summary)});
}

std::string held_text(const TuneSetting& setting, TuneVariable variable) {
  std::string text;
  for (const TuneVariable other : {TuneVariable::workers, TuneVariable::prefetch,
                                   TuneVariable::micro_batches, TuneVariable::batch_size})
    if (other != variable)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(other),
                          value_of(setting, other));
  return text;
}

std::string phase_text(const TuneFindings& findings, const TunePhase& phase) {
  std::string text = fmt::format("{} (with {})\n", to_string(phase.variable),
                                 held_text(findings.points[phase.chosen].setting, phase.variable));
  text += table_row({to_string(phase.variable), "samples/s", "p50 ms", "p95 ms", "p99 ms",
                     "idle % (95%)", "feeds", "first batch ms", "MB", "runs"});
  for (const std::size_t point : phase.points)
    text += point_row(findings.points[point], phase.variable, point == phase.chosen);
  return text + "  " + phase.why + "\n\n";
}

/// Bars of the rates that were measured, with the fit and the step's rate as marks.
std::string plot(const TuneResult& result) {
  const TuneFindings& findings = result.findings;
  const TunePhase& phase = findings.phases.front();
  const double needed = result.goal.step_ms > 0 ? static_cast<double>(result.goal.batch_size) *
                                                      1e3 / result.goal.step_ms
                                                : 0;
  constexpr double columns = 60;
  double highest = 0;
  for (const std::size_t point : phase.points) {
    const double fitted = findings.fit.rate(findings.points[point].setting.workers);
    highest = std::max({highest, findings.points[point].summary.samples_per_second.mean, fitted});
  }
  if (highest <= 0) return {};
  if (needed < 1.5 * highest) highest = std::max(highest, needed);
  const auto column = [&](double rate) {
    return static_cast<std::size_t>(std::lround(rate / highest * (columns - 1)));
  };
  std::string text = "workers and samples/s: # measured, * the fit";
  text += needed <= 0        ? "\n"
          : needed > highest ? fmt::format("; the step takes {:.0f}, off the scale\n", needed)
                             : ", | what the step takes\n";
  for (const std::size_t index : phase.points) {
    const TunePoint& point = findings.points[index];
    const double rate = point.summary.samples_per_second.mean;
    std::string bar(static_cast<std::size_t>(columns), ' ');
    std::fill_n(bar.begin(), column(rate) + 1, '#');
    if (needed > 0 && needed <= highest) bar[column(needed)] = '|';
    if (findings.fit.parameters > 0)
      bar[std::min(column(findings.fit.rate(point.setting.workers)), bar.size() - 1)] = '*';
    text += fmt::format("{:>15}  {} {:.0f}\n", point.setting.workers, bar, rate);
  }
  return text;
}

std::string fit_text(const TuneFindings& findings) {
  const UslFit& fit = findings.fit;
  if (fit.parameters == 0) return "  no fit: the step held down every worker count's rate\n\n";
  std::string text = fmt::format("  X(N) = {:.1f} N / (1 + {:.4g} (N - 1) + {:.4g} N (N - 1))",
                                 fit.lambda, fit.sigma, fit.kappa);
  if (fit.parameters < 2) return text + ", of one worker count alone: no more than its rate\n\n";
  text += fmt::format(", R² {:.3f}{}; knee at {}", fit.r_squared,
                      fit.parameters < 3 ? ", of two worker counts" : "", findings.knee);
  if (std::isfinite(fit.peak())) text += fmt::format(", peak at {:.0f}", fit.peak());
  return text + "\n\n";
}

std::string disturbed_text(const TuneFindings& findings) {
  std::size_t runs = 0;
  std::size_t disturbed = 0;
  double most = 0;
  for (const TunePoint& point : findings.points)
    for (const TuneRun& run : point.runs) {
      ++runs;
      if (run.disturbed > disturbed_share) ++disturbed;
      most = std::max(most, run.disturbed);
    }
  if (disturbed == 0) return {};
  return fmt::format(
      "In {} of {} runs other programs took more than {:.0f}% of the processors, up to {:.0f}%; a "
      "quieter machine gives surer "
      "results.\n\n",
      disturbed, runs, 100 * disturbed_share, 100 * most);
}

Json to_json(Mean value) { return {{"mean", value.mean}, {"sd", value.sd}}; }

Json to_json(const TuneSetting& setting) {
  return {{"workers", setting.workers},
          {"prefetch", setting.prefetch},
          {"micro_batches", setting.micro_batches},
          {"batch_size", setting.batch_size}};
}

Json to_json(const TuneRun& run) {
  return {{"at_seconds", run.at_seconds},
          {"seconds", run.seconds},
          {"batches", run.batches},
          {"samples_per_second", run.samples_per_second},
          {"device_idle", run.device_idle ? Json(*run.device_idle) : Json()},
          {"stall_share", run.stall_share},
          {"first_batch_ms", run.first_batch_ms},
          {"pinned_bytes", run.pinned_bytes},
          {"device_bytes", run.device_bytes},
          {"scratch_bytes", run.scratch_bytes},
          {"disturbed", run.disturbed}};
}

Json to_json(const TunePoint& point) {
  const TuneSummary& summary = point.summary;
  Json runs = Json::array();
  for (const TuneRun& run : point.runs) runs.push_back(to_json(run));
  return {{"setting", to_json(point.setting)},
          {"feeds", to_string(point.feeds)},
          {"runs_counted", summary.runs},
          {"runs_set_aside", summary.set_aside},
          {"samples_per_second", to_json(summary.samples_per_second)},
          {"batch_ms",
           {{"p50", summary.batch_p50_ms},
            {"p95", summary.batch_p95_ms},
            {"p99", summary.batch_p99_ms}}},
          {"device_idle", summary.device_idle ? to_json(*summary.device_idle) : Json()},
          {"device_idle_low", summary.device_idle ? Json(summary.idle_low) : Json()},
          {"device_idle_high", summary.device_idle ? Json(summary.idle_high) : Json()},
          {"stall_share", to_json(summary.stall_share)},
          {"first_batch_ms", to_json(summary.first_batch_ms)},
          {"memory_bytes", summary.memory_bytes},
          {"runs", runs}};
}

Json to_json(const TunePhase& phase) {
  return {{"variable", to_string(phase.variable)},
          {"points", phase.points},
          {"chosen", phase.chosen},
          {"why", phase.why}};
}

Json fit_json(const TuneFindings& findings) {
  const UslFit& fit = findings.fit;
  return {
      {"lambda", fit.lambda},       {"sigma", fit.sigma},
      {"kappa", fit.kappa},         {"parameters", fit.parameters},
      {"r_squared", fit.r_squared}, {"peak", std::isfinite(fit.peak()) ? Json(fit.peak()) : Json()},
      {"knee", findings.knee}};
}

Json goal_json(const TuneGoal& goal) {
  return {{"step_ms", goal.step_ms},
          {"max_workers", goal.max_workers},
          {"batch_size", goal.batch_size},
          {"tune_batch_size", goal.tune_batch_size},
          {"p99_ms", goal.p99_ms ? Json(*goal.p99_ms) : Json()},
          {"memory_bytes", goal.memory_bytes ? Json(*goal.memory_bytes) : Json()},
          {"budget_seconds", goal.budget_seconds}};
}

Json machine_json(const Machine& machine) {
  Json libraries = Json::object();
  for (const auto& [name, version] : machine.libraries) libraries[name] = version;
  return {{"cpu", machine.cpu},
          {"cores", machine.cores},
          {"numa_nodes", machine.numa_nodes},
          {"kernel", machine.kernel},
          {"compiler", machine.compiler},
          {"memory_bytes", machine.memory_bytes},
          {"commit", machine.commit},
          {"libraries", libraries}};
}

}  // namespace

const char* to_string(TuneOutcome outcome) {
  switch (outcome) {
    case TuneOutcome::feeds_step:
      return "feeds_step";
    case TuneOutcome::nothing_feeds:
      return "nothing_feeds";
    case TuneOutcome::no_step:
      return "no_step";
    case TuneOutcome::nothing_fits:
      return "nothing_fits";
  }
  return "unknown";
}

const char* to_string(Feeds feeds) {
  switch (feeds) {
    case Feeds::no_step:
      return "no_step";
    case Feeds::yes:
      return "yes";
    case Feeds::no:
      return "no";
    case Feeds::unsure:
      return "unsure";
  }
  return "unknown";
}

std::string to_text(const TuneResult& result) {
  const TuneFindings& findings = result.findings;
  const TuneGoal& goal = result.goal;
  std::size_t runs = 0;
  for (const TunePoint& point : findings.points) runs += point.runs.size();
  std::string text = fmt::format("{}: {} records, recipe {}, batches of {}", result.dataset,
                                 result.records, result.recipe_name, goal.batch_size);
  if (goal.step_ms > 0)
    text += fmt::format(", a step of {:g} ms ({:.0f} samples/s)", goal.step_ms,
                        static_cast<double>(goal.batch_size) * 1e3 / goal.step_ms);
  text += fmt::format("\n{}, {}; {} of about {:.2g} s in {:.1f} s\n\n", result.machine.cpu,
                      plural(result.machine.cores, "core"), plural(runs, "run"),
                      findings.run_seconds, findings.total_seconds);
  for (const TunePhase& phase : findings.phases) {
    text += phase_text(findings, phase);
    if (phase.variable == TuneVariable::workers) text += plot(result) + fit_text(findings);
  }
  for (const std::string& sentence : findings.not_measured)
    text += "not measured: " + sentence + '\n';
  if (!findings.not_measured.empty())
    text +=
        fmt::format("The budget was {:g} s; --budget-s gives it more.\n\n", goal.budget_seconds);
  return text + disturbed_text(findings) + findings.verdict + '\n';
}

std::string to_json(const TuneResult& result) {
  const TuneFindings& findings = result.findings;
  Json points = Json::array();
  for (const TunePoint& point : findings.points) points.push_back(to_json(point));
  Json phases = Json::array();
  for (const TunePhase& phase : findings.phases) phases.push_back(to_json(phase));
  const Json json = {{"dataset", result.dataset},
                     {"records", result.records},
                     {"recipe", result.recipe_name},
                     {"recipe_program", Json::parse(result.recipe)},
                     {"device", result.device},
                     {"seed", result.seed},
                     {"goal", goal_json(result.goal)},
                     {"outcome", to_string(findings.outcome)},
                     {"chosen", to_json(findings.chosen)},
                     {"chosen_point", findings.chosen_point},
                     {"verdict", findings.verdict},
                     {"why", findings.why},
                     {"not_measured", findings.not_measured},
                     {"fit", fit_json(findings)},
                     {"phases", phases},
                     {"points", points},
                     {"run_seconds", findings.run_seconds},
                     {"total_seconds", findings.total_seconds},
                     {"machine", machine_json(result.machine)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace millrace::cli
