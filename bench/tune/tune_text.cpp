// SPDX-License-Identifier: Apache-2.0
#include "tune/tune_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "console/text.h"

namespace millrace::cli {
namespace {

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::string rate_text(const TuneSummary& summary) {
  return mean_text(summary.samples_per_second) + " samples/s";
}

std::string idle_text(const TuneSummary& summary) {
  if (!summary.device_idle) return "";
  return fmt::format("the device is idle {} of the time (at most {} with 95% confidence)",
                     percent(summary.device_idle->mean), percent(summary.idle_high));
}

std::string short_idle_text(const TuneSummary& summary) {
  if (!summary.device_idle) return "-";
  return fmt::format("{} (up to {})", percent(summary.device_idle->mean),
                     percent(summary.idle_high));
}

/// The next cheaper setting that was tried; null if there is none.
const TunePoint* cheaper_than_chosen(const TuneFindings& findings, const TunePhase& phase) {
  const auto chosen = std::ranges::find(phase.points, phase.chosen);
  return chosen == phase.points.begin() ? nullptr : &findings.points[*(chosen - 1)];
}

std::string workers_reason(const TuneGoal& goal, const TuneFindings& findings,
                           const TunePhase& phase) {
  const TunePoint& chosen = findings.points[phase.chosen];
  const std::string workers = count_text(chosen.setting.workers, "worker");
  const char* s = chosen.setting.workers == 1 ? "s" : "";
  std::string text;
  if (chosen.feeds == Feeds::yes) {
    text = fmt::format("{} feed{} the step: {}", workers, s, idle_text(chosen.summary));
    if (const TunePoint* cheaper = cheaper_than_chosen(findings, phase))
      text += fmt::format("; with {} it is {}", cheaper->setting.workers,
                          short_idle_text(cheaper->summary));
    return text + '.';
  }
  if (goal.step_ms > 0) text = "No number of workers that was tried feeds the step surely. ";
  text +=
      fmt::format("{} make{} {}, the knee of throughput", workers, s, rate_text(chosen.summary));
  for (const std::size_t index : phase.points) {
    const TunePoint& other = findings.points[index];
    if (index != phase.chosen)
      text += fmt::format("; {}: {}", other.setting.workers,
                          mean_text(other.summary.samples_per_second));
  }
  return text + '.';
}

std::string prefetch_reason(const TuneFindings& findings, const TunePhase& phase) {
  const TunePoint& chosen = findings.points[phase.chosen];
  const TunePoint* cheaper = cheaper_than_chosen(findings, phase);
  std::string text =
      fmt::format("Prefetch {} is the smallest with no loss", chosen.setting.prefetch);
  if (cheaper != nullptr)
    text += fmt::format("; with {} ", cheaper->setting.prefetch) +
            (chosen.feeds == Feeds::yes
                 ? "the device is idle " + short_idle_text(cheaper->summary)
                 : fmt::format("it is {} instead of {}", rate_text(cheaper->summary),
                               rate_text(chosen.summary)));
  return text + '.';
}

std::string micro_batches_reason(const TuneFindings& findings, const TunePhase& phase) {
  const std::size_t parts = findings.points[phase.chosen].setting.micro_batches;
  if (parts > 1)
    return fmt::format("Copying each batch in {} parts gains {} beyond noise.", parts,
                       phase.gained);
  if (phase.points.size() < 2) return "Each batch is copied in one part; more were not tried.";
  return "Each batch is copied in one part: more gain nothing beyond noise.";
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
                        "samples/s; this is the knee of throughput, {}; {}.",
                        goal.step_ms, goal.needed_samples_per_second(), rate_text(summary),
                        idle_text(summary));
    case TuneOutcome::no_step:
      return what + fmt::format("the knee of throughput, {}.", rate_text(summary));
    case TuneOutcome::nothing_fits:
      break;
  }
  return what + fmt::format(
                    "no batch size keeps within {}; this is the smallest that was tried, "
                    "{}.",
                    limits_text(goal), rate_text(summary));
}

}  // namespace

const char* to_string(TuneVariable variable) {
  constexpr const char* names[] = {"workers", "prefetch", "micro_batches", "batch_size"};
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
  const std::size_t values[] = {setting.workers, setting.prefetch, setting.micro_batches,
                                setting.batch_size};
  return values[static_cast<std::size_t>(variable)];
}

std::string mean_text(Mean value, int digits) {
  return fmt::format("{:.{}f} ± {:.{}f}", value.mean, digits, value.sd, digits);
}

std::string setting_text(const TuneSetting& setting) {
  return fmt::format("{}, prefetch {}, {}, batches of {}", count_text(setting.workers, "worker"),
                     setting.prefetch, count_text(setting.micro_batches, "part"),
                     setting.batch_size);
}

std::string limits_text(const TuneGoal& goal) {
  std::string text;
  if (goal.p99_ms) text = fmt::format("p99 {:g} ms", *goal.p99_ms);
  if (goal.memory_bytes)
    text += fmt::format("{}{:.0f} MB", text.empty() ? "" : " and ",
                        static_cast<double>(*goal.memory_bytes) / 1e6);
  return text;
}

std::string not_measured_text(TuneVariable variable, const TuneSetting& chosen) {
  return fmt::format(
      "{}: the time was over before every value was tried often enough to be sure; {} is the best "
      "of what was measured",
      to_string(variable), value_of(chosen, variable));
}

void say_why(const TuneGoal& goal, TuneFindings& findings) {
  findings.verdict = verdict_text(goal, findings);
  findings.why = findings.verdict;
  for (TunePhase& phase : findings.phases) {
    if (phase.variable == TuneVariable::workers) phase.why = workers_reason(goal, findings, phase);
    if (phase.variable == TuneVariable::prefetch) phase.why = prefetch_reason(findings, phase);
    if (phase.variable == TuneVariable::micro_batches)
      phase.why = micro_batches_reason(findings, phase);
    findings.why += ' ' + phase.why;
  }
}

}  // namespace millrace::cli
