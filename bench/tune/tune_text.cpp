// SPDX-License-Identifier: Apache-2.0
#include "tune/tune_text.h"

#include <fmt/format.h>

#include "tune/tune_statistics.h"

namespace millrace::cli {
namespace {

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

/// "2104 ± 12 samples/s"
std::string rate_text(const TuneSummary& summary) {
  return fmt::format("{:.0f} ± {:.0f} samples/s", summary.samples_per_second.mean,
                     summary.samples_per_second.sd);
}

std::string idle_text(const TuneSummary& summary) {
  return summary.device_idle
             ? fmt::format("the device is idle {} of the time (at most {} with 95% confidence)",
                           percent(summary.device_idle->mean), percent(summary.idle_high))
             : std::string();
}

std::string rate_needed(const TuneGoal& goal) {
  return fmt::format("{:.0f} samples/s", static_cast<double>(goal.batch_size) * 1e3 / goal.step_ms);
}

/// The next cheaper setting that was tried, if any.
const TunePoint* cheaper_than_chosen(const TuneFindings& findings, const TunePhase& phase) {
  const TunePoint* cheaper = nullptr;
  for (const std::size_t point : phase.points) {
    if (point == phase.chosen) break;
    cheaper = &findings.points[point];
  }
  return cheaper;
}

std::string idle_of(const TuneSummary& summary) {
  return summary.device_idle ? fmt::format("{} (up to {})", percent(summary.device_idle->mean),
                                           percent(summary.idle_high))
                             : "-";
}

std::string workers_reason(const TuneGoal& goal, const TuneFindings& findings,
                           const TunePhase& phase) {
  const TunePoint& chosen = findings.points[phase.chosen];
  const TunePoint* cheaper = cheaper_than_chosen(findings, phase);
  const unsigned workers = chosen.setting.workers;
  std::string text;
  if (chosen.feeds == Feeds::yes) {
    text = fmt::format("{} {} the step: {}", plural(workers, "worker"),
                       workers == 1 ? "feeds" : "feed", idle_text(chosen.summary));
    if (cheaper != nullptr)
      text +=
          fmt::format("; with {} it is {}", cheaper->setting.workers, idle_of(cheaper->summary));
    return text + '.';
  }
  if (goal.step_ms > 0) text = "No number of workers that was tried feeds the step surely. ";
  text += fmt::format("{} {} {}, the knee of throughput", plural(workers, "worker"),
                      workers == 1 ? "makes" : "make", rate_text(chosen.summary));
  for (const std::size_t other : phase.points)
    if (other != phase.chosen)
      text += fmt::format("; {}: {:.0f} ± {:.0f}", findings.points[other].setting.workers,
                          findings.points[other].summary.samples_per_second.mean,
                          findings.points[other].summary.samples_per_second.sd);
  return text + '.';
}

std::string prefetch_reason(const TuneFindings& findings, const TunePhase& phase) {
  const TunePoint& chosen = findings.points[phase.chosen];
  const TunePoint* cheaper = cheaper_than_chosen(findings, phase);
  const std::string text =
      fmt::format("Prefetch {} is the smallest with no loss", chosen.setting.prefetch);
  if (cheaper == nullptr) return text + '.';
  if (chosen.feeds == Feeds::yes)
    return text + fmt::format("; with {} the device is idle {}.", cheaper->setting.prefetch,
                              idle_of(cheaper->summary));
  return text + fmt::format("; with {} it is {} instead of {}.", cheaper->setting.prefetch,
                            rate_text(cheaper->summary), rate_text(chosen.summary));
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
  const TuneSetting& setting = findings.chosen;
  const TuneSummary& summary = findings.points[findings.chosen_point].summary;
  std::string what =
      fmt::format("{}, prefetch {}, {}, batches of {}", plural(setting.workers, "worker"),
                  setting.prefetch, plural(setting.micro_batches, "part"), setting.batch_size);
  switch (findings.outcome) {
    case TuneOutcome::feeds_step:
      return fmt::format("{}: the smallest setting that feeds the step of {:g} ms, {}.", what,
                         goal.step_ms, idle_text(summary));
    case TuneOutcome::nothing_feeds:
      return fmt::format(
          "{}: nothing feeds the step of {:g} ms surely, which takes {}; this is the knee of "
          "throughput, {}; {}.",
          what, goal.step_ms, rate_needed(goal), rate_text(summary), idle_text(summary));
    case TuneOutcome::no_step:
      return fmt::format("{}: the knee of throughput, {}.", what, rate_text(summary));
    case TuneOutcome::nothing_fits:
      return fmt::format(
          "{}: no batch size keeps within {}; this is the smallest that was tried, {}.", what,
          limits_text(goal), rate_text(summary));
  }
  return what;
}

}  // namespace

const char* to_string(TuneVariable variable) {
  switch (variable) {
    case TuneVariable::workers:
      return "workers";
    case TuneVariable::prefetch:
      return "prefetch";
    case TuneVariable::micro_batches:
      return "micro_batches";
    case TuneVariable::batch_size:
      return "batch_size";
  }
  return "unknown";
}

std::size_t value_of(const TuneSetting& setting, TuneVariable variable) {
  switch (variable) {
    case TuneVariable::workers:
      return setting.workers;
    case TuneVariable::prefetch:
      return setting.prefetch;
    case TuneVariable::micro_batches:
      return setting.micro_batches;
    case TuneVariable::batch_size:
      return setting.batch_size;
  }
  return 0;
}

std::string plural(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
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
