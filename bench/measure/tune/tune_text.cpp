// SPDX-License-Identifier: Apache-2.0
#include "measure/tune/tune_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/text/text.h"
#include "measure/tune/tune_statistics.h"

namespace millrace::cli {
namespace {

std::string rate_text(const TuneSummary& summary) {
  return mean_text(summary.samples_per_second) + " samples/s";
}

std::string idle_text(const TuneSummary& summary) {
  if (!summary.device_idle) return "";
  return fmt::format("the device is idle {} of the time (at most {} with 95% confidence)",
                     percent_text(summary.device_idle->mean), percent_text(summary.idle_high));
}

bool is_told_apart(const TuneFindings& findings, TuneVariable variable) {
  return std::ranges::find(findings.not_told_apart, variable) == findings.not_told_apart.end();
}

const char* knee_text(const TuneFindings& findings) {
  return is_told_apart(findings, TuneVariable::workers)
             ? "the knee of throughput"
             : "the best mean, for noise hides the knee of throughput";
}

/// Returns the reason for the number of workers or the prefetch: the chosen value, and the results
/// of the other values.
std::string reason(const TuneFindings& findings, const TunePhase& phase) {
  const TunePoint& chosen = findings.points[phase.chosen];
  const bool is_share = phase.variable == TuneVariable::device_share;
  const bool feeds = chosen.feeds == Feeds::yes && !is_share;
  const std::string value = value_text(chosen.setting, phase.variable);
  std::string text = phase.variable == TuneVariable::workers
                         ? count_text(chosen.setting.workers, "worker")
                         : (is_share ? "device_share " : "Prefetch ") + value;
  text += feeds ? ": the least that feeds the step, " + idle_text(chosen.summary)
          : is_told_apart(findings, phase.variable)
              ? ": the least that loses nothing, " + rate_text(chosen.summary)
          : is_share ? ": noise hides which share is best, " + rate_text(chosen.summary)
                     : ": noise hides whether less is as good, " + rate_text(chosen.summary);
  for (const std::size_t index : phase.points) {
    const TunePoint& other = findings.points[index];
    if (index != phase.chosen)
      text += fmt::format("; {}: {}", value_text(other.setting, phase.variable),
                          feeds ? percent_text(other.summary.device_idle->mean)
                                : mean_text(other.summary.samples_per_second));
  }
  return text + '.';
}

std::string verdict_text(const TuneGoal& goal, const TuneFindings& findings) {
  const TuneSummary& summary = findings.points[findings.chosen_point].summary;
  const std::string what = setting_text(findings.chosen) + ": ";
  switch (findings.outcome) {
    case TuneOutcome::feeds_step:
      return what + fmt::format("the smallest setting that feeds the step of {:g} ms, {}.",
                                goal.step_ms, idle_text(summary));
    case TuneOutcome::nothing_feeds:
      return what + fmt::format(
                        "nothing feeds the step of {:g} ms surely, which takes {:.0f} "
                        "samples/s; this is {}, {}; {}.",
                        goal.step_ms, goal.needed_samples_per_second(), knee_text(findings),
                        rate_text(summary), idle_text(summary));
    case TuneOutcome::no_step:
      return what + fmt::format("{}, {}.", knee_text(findings), rate_text(summary));
    case TuneOutcome::nothing_fits:
      break;
  }
  return what + fmt::format("no batch size keeps within {}; this is the smallest tried, {}.",
                            limits_text(goal), rate_text(summary));
}

std::string disturbed_text(const TuneFindings& findings) {
  std::size_t runs = 0;
  std::size_t disturbed = 0;
  for (const TunePoint& point : findings.points) {
    runs += point.runs.size();
    disturbed += point.summary.disturbed + point.summary.set_aside;
  }
  if (disturbed == 0) return {};
  return fmt::format(
      "In {} of {} runs other programs took more than {:.0f}% of the processors; a quieter machine "
      "gives surer results.",
      disturbed, runs, 100 * disturbed_share);
}

void warn(TuneFindings& findings) {
  std::vector<std::string>& warnings = findings.warnings;
  if (findings.outcome == TuneOutcome::nothing_feeds)
    warnings.emplace_back("Nothing feeds the step surely: the best that was measured is taken.");
  if (findings.outcome != TuneOutcome::feeds_step) {
    for (const TuneVariable variable : findings.not_told_apart)
      warnings.push_back(fmt::format(
          "Noise hides which value of {} is best in the time there was: the {} is taken.",
          to_string(variable), variable == TuneVariable::prefetch ? "larger one" : "best mean"));
    findings.doubtful =
        !warnings.empty() || findings.points[findings.chosen_point].summary.disturbed > 0;
  }
  const TunePoint& chosen = findings.points[findings.chosen_point];
  if (std::ranges::any_of(chosen.runs, [](const TuneRun& run) { return !run.scratch_bytes; }))
    warnings.emplace_back(
        "The memory of the workers is unknown, since the system does not tell it (/proc): only "
        "pinned and device memory count.");
  if (!chosen.runs.empty())
    std::ranges::copy(chosen.runs.back().warnings, std::back_inserter(warnings));
  if (const std::string text = disturbed_text(findings); !text.empty()) warnings.push_back(text);
}

}  // namespace

const char* to_string(TuneVariable variable) {
  constexpr const char* names[] = {"workers", "prefetch", "micro_batches", "batch_size",
                                   "device_share"};
  return names[static_cast<std::size_t>(variable)];
}

const char* to_string(TuneOutcome outcome) {
  constexpr const char* names[] = {"feeds_step", "nothing_feeds", "no_step", "nothing_fits"};
  return names[static_cast<std::size_t>(outcome)];
}

const char* to_string(Feeds feeds) {
  constexpr const char* names[] = {"no_step", "yes", "no", "unsure"};
  return names[static_cast<std::size_t>(feeds)];
}

std::size_t value_of(const TuneSetting& setting, TuneVariable variable) {
  const auto percent =
      static_cast<std::size_t>(std::llround(100 * setting.device_share.value_or(1)));
  const std::size_t values[] = {setting.workers, setting.prefetch, setting.micro_batches,
                                setting.batch_size, percent};
  return values[static_cast<std::size_t>(variable)];
}

std::string value_text(const TuneSetting& setting, TuneVariable variable) {
  const std::size_t value = value_of(setting, variable);
  return variable == TuneVariable::device_share
             ? fmt::format("{:g}", static_cast<double>(value) / 100)
             : std::to_string(value);
}

std::string mean_text(Mean value, int digits) {
  return fmt::format("{:.{}f} ± {:.{}f}", value.mean, digits, value.sd, digits);
}

std::string setting_text(const TuneSetting& setting) {
  std::string text = fmt::format(
      "{}, prefetch {}, {}, batches of {}", count_text(setting.workers, "worker"), setting.prefetch,
      count_text(setting.micro_batches, "micro-batch"), setting.batch_size);
  if (setting.device_share)
    text += ", device_share " + value_text(setting, TuneVariable::device_share);
  return text;
}

std::string limits_text(const TuneGoal& goal) {
  std::string text;
  if (goal.p99_ms) text = fmt::format("p99 {:g} ms", *goal.p99_ms);
  if (goal.memory_bytes)
    text += fmt::format("{}{:.0f} MB", text.empty() ? "" : " and ",
                        static_cast<double>(*goal.memory_bytes) / 1e6);
  return text;
}

std::string law_text(const UslFit& fit) {
  constexpr const char* law =
      "universal scalability law X(N) = a N / (1 + b (N - 1) + c N (N - 1))";
  if (fit.parameters < 3)
    return fmt::format("Too few worker counts were measured for a curve, the {}.", law);
  if (!fit.holds())
    return fmt::format("The rates do not follow the {}: R² is {:.3f}.", law, fit.r_squared);
  std::string text = fmt::format(
      "The {} fits with {:.1f} samples/s for one worker, contention {:.4f} and coherency {:.6f} "
      "(R² {:.3f}).",
      law, fit.lambda, fit.sigma, fit.kappa, fit.r_squared);
  if (fit.kappa > 0)
    text += fmt::format(" By it, throughput is highest with {:.0f} workers.", fit.peak());
  else if (fit.sigma > 0)
    text += fmt::format(" By it, no number of workers gives more than {:.0f} samples/s.",
                        fit.lambda / fit.sigma);
  return text;
}

void say_why(const TuneGoal& goal, TuneFindings& findings) {
  findings.verdict = verdict_text(goal, findings);
  warn(findings);
  findings.why = findings.verdict;
  for (const std::string& warning : findings.warnings) findings.why += ' ' + warning;
  for (TunePhase& phase : findings.phases) {
    if (phase.why.empty()) phase.why = reason(findings, phase);
    findings.why += ' ' + phase.why;
  }
}

}  // namespace millrace::cli
