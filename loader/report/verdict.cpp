// SPDX-License-Identifier: Apache-2.0
//
// The verdict: finds the stage that bounds a run from its report.
#include "report/verdict.h"

#include <millrace/report.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace millrace {
namespace {

/// The device counts as fed if its share of idle time is below this. If the idle time is unknown,
/// the trainer counts as fed if its share of stall time is below the second value.
constexpr double fed_idle_limit = 0.02;
constexpr double little_stall = 0.05;
/// A stage counts as busy all the time if its share of busy time is at least `saturated`. For the
/// streams of copies and conversions, the limit is `full` if the trainer is busier and no time
/// seems lost. Time seems lost if the device is known to be idle, or if the trainer stalls or is
/// ahead.
constexpr double saturated = 0.85;
constexpr double full = 0.95;
/// If the workers' share of time without a processor is above this, the processors bound the run.
constexpr double short_of_cores = 0.25;
/// If the workers' share of time without a processor is above this, a run with stalls gets a
/// warning.
constexpr double kept_waiting = 0.1;
/// A sample is slow if it takes this many times as long as a usual sample.
constexpr double slow_sample = 10;
/// A sample that takes less time than this does not delay a trainer noticeably.
constexpr double min_slow_ms = 1;
/// Handing over a batch (planning, waking, counting) takes tens of microseconds. If the workers'
/// time for a batch and the trainer's wait for it are below this, the trainer waits for the
/// hand-over.
constexpr double hand_over_ms = 0.2;

/// Formats a number of tenths, rounded: 23.45 -> "2.3".
std::string tenths(double count) {
  const long rounded = std::lround(count);
  return std::to_string(rounded / 10) + "." + std::to_string(std::abs(rounded % 10));
}

/// 0.0123 -> "1.2%"
std::string percent(double share) { return tenths(share * 1000) + "%"; }

double paused_workers(const Report& report) {
  return report.active_workers > 0 ? report.workers - report.active_workers : 0;
}

std::string workers_text(const Report& report) {
  return report.workers == 1 ? "the worker is"
                             : "the " + std::to_string(report.workers) + " workers are";
}

/// Returns the stage of that name; an idle stage if the run does not have it.
StageReport stage_named(const Report& report, const char* name) {
  const auto stage = std::ranges::find(report.stages, name, &StageReport::name);
  return stage == report.stages.end() ? StageReport{} : *stage;
}

/// Whether the stream of conversions runs the stage.
bool converts(const StageReport& stage) {
  return stage.name == "convert" || (stage.on_device && stage.name != "copy");
}

/// Returns the share of time in which the stream of conversions is busy.
double converting(const Report& report) {
  double occupancy = 0;
  for (const StageReport& stage : report.stages) occupancy += converts(stage) ? stage.occupancy : 0;
  return occupancy;
}

/// Shares of time that the verdict uses. The trainer's shares exclude the start, which ends with
/// the run's first batch.
struct Shares {
  double stall;
  double ahead;
  double copy;
  /// Share of time in which the stream of conversions is busy, with conversions or with the device
  /// stages before them.
  double conversion;
  double trainer;
  std::optional<double> idle;

  /// Whether the trainer's stalls cost time: they are at least half of the device's idle time, if
  /// that is known.
  bool stalls_matter() const {
    return idle ? stall >= std::max(fed_idle_limit, *idle / 2) : stall >= little_stall;
  }
};

Shares shares_of(const Report& report, std::optional<double> device_idle) {
  const double all = 1e3 * report.seconds - report.start_stall_ms;
  const double milliseconds = all > 0 ? all : INFINITY;
  return {.stall = std::max(0.0, report.stall.total_ms - report.start_stall_ms) / milliseconds,
          .ahead = report.ahead.total_ms / milliseconds,
          .copy = stage_named(report, "copy").occupancy,
          .conversion = converting(report),
          .trainer = 1e3 * stage_named(report, "trainer").busy_seconds / milliseconds,
          .idle = device_idle};
}

std::string idle_text(const Shares& shares) {
  return shares.idle ? ", and the device was idle " + percent(*shares.idle) + " of the time" : "";
}

/// Returns the verdict of a run that further workers cannot speed up.
Verdict bound_by(Bound bound, const std::string& stage, double share, std::string text,
                 std::string advice) {
  return {.bound = bound,
          .stage = stage,
          .share = share,
          .next_bound = stage,
          .text = std::move(text),
          .advice = std::move(advice)};
}

Verdict by_step(const Report& report, const Shares& shares) {
  return bound_by(Bound::step, "step", shares.idle ? 1 - *shares.idle : shares.ahead,
                  shares.idle ? "the step bounds the run: the device was idle " +
                                    percent(*shares.idle) + " of the time"
                              : "the step bounds the run: batches were ready, and the trainer was "
                                "ahead of the device " +
                                    percent(shares.ahead) + " of the time",
                  "The loader has time to spare (" + workers_text(report) + " busy " +
                      percent(report.worker_utilization) +
                      " of the time); `millrace tune` finds the fewest that feed the step.");
}

Verdict by_trainer(const Shares& shares) {
  return bound_by(
      Bound::trainer, "trainer", shares.trainer,
      "the trainer's own work bounds the run: batches were ready when it asked (stall " +
          percent(shares.stall) + " of the time), and it spent " + percent(shares.trainer) +
          " of the time between its calls of next" + idle_text(shares),
      shares.idle ? "Shorten or overlap what the trainer's thread does between steps, "
                    "such as waiting for a step's result."
                  : "More workers would not help; shorten the step, or move other work "
                    "of its thread out of the loop.");
}

Verdict by_copy(const Report& report, const Shares& shares) {
  const double busy_seconds = stage_named(report, "copy").busy_seconds;
  const double rate =
      busy_seconds > 0 ? static_cast<double>(report.copied_bytes) / busy_seconds : 0;
  return bound_by(Bound::copy, "copy", shares.copy,
                  "copying bounds the run: the copy stream is busy " + percent(shares.copy) +
                      " of the time, at " + tenths(rate / 1e8) + " GB/s" + idle_text(shares),
                  "Copy fewer bytes (smaller samples, 8-bit pixels), or find out why the bus is "
                  "slow; more workers would not help.");
}

/// Returns advice for a run that the stream of conversions bounds. `stage` is its busiest stage.
std::string advice_for(const std::string& stage) {
  if (stage == "convert")
    return "The step's kernels and the conversion share the device: convert to a smaller type, or "
           "increase device_slots, so that it can run ahead; more workers would not help.";
  const std::string shared = "The step's kernels and " + stage + " share the device: ";
  if (stage == "move") return shared + "take fewer bytes of other fields than the images.";
  if (stage == "erase" || stage == "mix" || stage == "erase+mix")
    return shared + "let workers do it (on = worker).";
  return shared +
         "let workers make more of the samples (a smaller device_share), or all of them "
         "(decode_on = worker).";
}

Verdict by_conversion(const Report& report, const Shares& shares) {
  const auto busy = [](const StageReport& stage) { return converts(stage) ? stage.occupancy : 0; };
  const StageReport& stage = *std::ranges::max_element(report.stages, {}, busy);
  const bool alone = stage.occupancy == shares.conversion;
  return bound_by(Bound::convert, stage.name, stage.occupancy,
                  (stage.name == "convert" ? "conversion" : stage.name) +
                      " on the device bounds the run: its stream is busy " +
                      percent(shares.conversion) + " of the time" +
                      (alone ? ""
                             : ", " + percent(stage.occupancy / shares.conversion) + " of it in " +
                                   stage.name) +
                      idle_text(shares),
                  advice_for(stage.name));
}

Verdict by_stream(const Report& report, const Shares& shares, double occupancy) {
  return bound_by(Bound::storage, "stream", occupancy,
                  "the stream bounds the run: its thread is busy " + percent(occupancy) +
                      " of the time, and " + workers_text(report) + " busy only " +
                      percent(report.worker_utilization) + idle_text(shares),
                  "Make the stream's source faster, or pack the records; neither more workers nor "
                  "a larger prefetch would help.");
}

/// Verdict if the trainer is ahead and the device idle: the device waits for batches that are being
/// copied.
Verdict by_late_copies(const Shares& shares) {
  const bool copying = shares.copy >= shares.conversion;
  const double busy = std::max(shares.copy, shares.conversion);
  const std::string stage = copying ? "copy" : "convert";
  return bound_by(copying ? Bound::copy : Bound::convert, stage, busy,
                  stage + " bounds the run, as it is not hidden under steps: its stream is busy " +
                      percent(busy) + " of the time, and the trainer ahead " +
                      percent(shares.ahead) + idle_text(shares),
                  "Increase device_slots, to at least 2, so that the next batch is copied during a "
                  "step; more workers would not help.");
}

Verdict by_cores(const Report& report, const Shares& shares) {
  const double delay = report.worker_delay.value_or(0);
  return bound_by(Bound::cores, "cores", delay,
                  "a lack of processors bounds the run: " + workers_text(report) +
                      " kept waiting for one " + percent(delay) +
                      " of the time; the process may use " + std::to_string(report.cores) +
                      idle_text(shares),
                  report.workers > report.cores
                      ? "Give the process more processors, or take as many workers as it has (" +
                            std::to_string(report.cores) + ")."
                      : "Other work is on these processors: end it, or bind it elsewhere.");
}

/// Returns the verdict that names the stage with most of the workers' time.
Verdict by_workers(const Report& report, const Shares& shares) {
  const auto stage = std::ranges::max_element(report.stages, {}, &StageReport::share);
  const bool reading = stage == report.stages.begin();
  Verdict verdict{.bound = reading ? Bound::storage : Bound::transform, .stage = stage->name};
  verdict.share = stage->share;
  verdict.text = stage->name + " bounds the run: " + workers_text(report) + " busy " +
                 percent(report.worker_utilization) + " of the time, " + percent(stage->share) +
                 " of it in " + stage->name + idle_text(shares);

  const double device = shares.idle ? 1 - *shares.idle : 0;
  const double next_share = std::max({shares.copy, shares.conversion, shares.trainer, device});
  verdict.next_bound = next_share == shares.copy         ? "copy"
                       : next_share == shares.conversion ? "convert"
                       : next_share == device            ? "step"
                                                         : "trainer";
  verdict.speedup_limit = std::max(1.0, 1 / std::max(next_share, 1e-3));
  const std::string limit = verdict.speedup_limit >= 100
                                ? ""
                                : ", up to " + tenths(verdict.speedup_limit * 10) +
                                      " times as fast, until " + verdict.next_bound +
                                      " bounds the run";
  if (paused_workers(report) >= 1)
    verdict.advice =
        tenths(10 * paused_workers(report)) + " of the " + std::to_string(report.workers) +
        " workers are paused: activate them (RuntimeOptions::adaptive = false)" + limit + ".";
  else if (reading)
    verdict.advice =
        "Put the dataset on faster storage or into memory, or let more workers read at once" +
        limit + ".";
  else if (report.workers + report.launch_cores < report.cores)
    verdict.advice =
        "Take more workers: " + std::to_string(report.cores) + " cores are available" + limit + ".";
  else
    verdict.advice = "Every core has a worker: give the process more cores" + limit + ", or make " +
                     stage->name + " cheaper (smaller or differently stored images).";
  return verdict;
}

/// The workers' time for each batch that was handed out.
double work_ms(const Report& report) {
  return 1e3 * report.seconds * report.active_workers * report.worker_utilization /
         static_cast<double>(std::max<std::uint64_t>(report.batches, 1));
}

/// Whether the trainer waits for the hand-over of batches because samples are cheap.
bool waits_for_hand_over(const Report& report) {
  return work_ms(report) < hand_over_ms && report.stall.total_ms - report.start_stall_ms <
                                               hand_over_ms * static_cast<double>(report.batches);
}

Verdict by_hand_over(const Report& report, const Shares& shares) {
  const auto batches = static_cast<double>(report.batches);
  return bound_by(
      Bound::prefetch, "hand over", shares.stall,
      "handing over batches bounds the run, since batches are small: " +
          std::to_string(std::lround(static_cast<double>(report.samples) / batches)) +
          " samples take " + tenths(1e4 * work_ms(report)) +
          " us of the workers' time, less than handing over a batch, and the trainer waits " +
          percent(shares.stall) + " of the time" + idle_text(shares),
      "Take larger batches; neither more workers nor a larger prefetch would help.");
}

/// Verdict if batches come too late although no stage is busy all the time.
Verdict by_prefetch(const Report& report, const Shares& shares) {
  if (waits_for_hand_over(report)) return by_hand_over(report, shares);
  const std::string waits = "the trainer waits " + percent(shares.stall) + " of the time while ";
  const std::string workers =
      workers_text(report) + " busy only " + percent(report.worker_utilization) + idle_text(shares);
  const auto slowest = std::ranges::max_element(
      report.stages, {}, [](const auto& stage) { return stage.share > 0 ? stage.each.max_ms : 0; });
  if (slowest != report.stages.end() && slowest->each.max_ms >= report.stall.max_ms / 2 &&
      slowest->each.max_ms >= min_slow_ms &&
      slowest->each.max_ms >= slow_sample * slowest->each.p50_ms)
    return bound_by(
        Bound::prefetch, "prefetch", shares.stall,
        "an occasional slow sample bounds the run, as the prefetch is too small to hide it: " +
            waits + workers + "; " + slowest->name + " takes up to " +
            std::to_string(std::lround(slowest->each.max_ms)) + " ms for a sample (" +
            tenths(10 * slowest->each.p50_ms) + " ms is usual)",
        "Take a larger prefetch, or make these records as fast as others; a trace names them.");
  if (report.ready_batches >= 1 && shares.copy > 0)
    return bound_by(Bound::copy, "upload", shares.stall,
                    "upload bounds the run: " + waits + tenths(10 * report.ready_batches) +
                        " made batches wait to be copied, and the copy stream is busy only " +
                        percent(shares.copy) + idle_text(shares),
                    "Find out what holds up the device's calls that enqueue copies; more workers "
                    "would not help.");
  return bound_by(Bound::prefetch, "prefetch", shares.stall,
                  "a small prefetch bounds the run: " + waits + workers,
                  "Take a larger prefetch, so that batches are made while the trainer is at work; "
                  "more workers would not help.");
}

}  // namespace

const StageReport* device_stage(const Report& report) {
  const auto stage = std::ranges::find_if(report.stages, [](const StageReport& one) {
    return converts(one) && one.name != "move" && one.name != "convert";
  });
  return stage == report.stages.end() ? nullptr : &*stage;
}

void warn_of_delay(Report& report) {
  const double delay = report.worker_delay.value_or(0);
  if (delay <= kept_waiting || !shares_of(report, {}).stalls_matter() ||
      waits_for_hand_over(report))
    return;
  report.warnings.push_back("oversubscribed: " + workers_text(report) +
                            " kept waiting for a processor " + percent(delay) +
                            " of the time; other threads or processes run on the same ones");
}

Verdict judge(const Report& report, std::optional<double> device_idle) {
  const Shares shares = shares_of(report, device_idle);
  if (report.batches < 2)
    return bound_by(Bound::trainer, "trainer", shares.trainer,
                    "too few batches to say what bounds the run: " +
                        std::to_string(report.batches) + " handed out",
                    "Judge after more batches.");
  if (device_idle && *device_idle < fed_idle_limit) return by_step(report, shares);
  const bool stalls = shares.stalls_matter();
  const bool ahead = shares.ahead >= fed_idle_limit;
  // A slow copy may delay only the trainer's stream, and no call of `next`. A slow conversion
  // delays copies, so host slots become free later. `next` counts the wait for them as "ahead".
  const double device_stream = std::max(shares.copy, shares.conversion);
  // Work in progress at the report's end is not counted yet, so shares are uncertain by one batch.
  const double unsure = 1 / static_cast<double>(report.batches);
  const bool shows_lost_time =
      device_idle || stalls || ahead || device_stream + unsure >= shares.trainer;
  if (device_stream >= (shows_lost_time ? saturated : full) &&
      device_stream > report.worker_utilization)
    return shares.conversion > shares.copy ? by_conversion(report, shares)
                                           : by_copy(report, shares);
  const double record_stream = stage_named(report, "stream").occupancy;
  if (stalls && record_stream >= saturated && record_stream > report.worker_utilization)
    return by_stream(report, shares, record_stream);
  if (stalls && report.worker_utilization < saturated) return by_prefetch(report, shares);
  if (stalls && report.worker_delay.value_or(0) >= short_of_cores) return by_cores(report, shares);
  if (stalls) return by_workers(report, shares);
  if (ahead && !device_idle) return by_step(report, shares);
  if (ahead && device_stream >= *device_idle / 2) return by_late_copies(shares);
  return by_trainer(shares);
}

}  // namespace millrace
