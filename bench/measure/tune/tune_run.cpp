// SPDX-License-Identifier: Apache-2.0
#include "measure/tune/tune_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "measure/machine/process.h"
#include "measure/tune/tune_search.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t max_warmup_batches = 10;
constexpr std::uint64_t fewest_warmup_batches = 2;
/// Minimum number of batches in a run, however long they take.
constexpr double fewest_measured_batches = 5;
/// Wanted number of batches in a run. A run has fewer if they would take more than this share of
/// the budget.
constexpr double wanted_batches = 20;
constexpr double max_run_share = 0.02;
/// Share of a run's time that is used for the warm-up.
constexpr double warmup_share = 0.2;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::size_t difference(std::size_t larger, std::size_t smaller) {
  return larger > smaller ? larger - smaller : 0;
}

/// Makes the runs of settings.
class Measuring {
 public:
  Measuring(BenchSettings settings, const TuneGoal& goal)
      : settings_(std::move(settings)),
        goal_(goal),
        resident_before_(ResidentMemory(settings_.dataset->facts().files).peak()) {
    // Kept hints and samples would make later runs faster than the first one, independent of their
    // settings.
    settings_.pipeline.index_bytes = 0;
    settings_.pipeline.cache_bytes = 0;
  }

  /// `seconds` is the time for warm-up and measurement together.
  TuneRun run(const TuneSetting& setting, double seconds) {
    set(setting);
    const double batch_seconds = batch_seconds_of(setting);
    settings_.warmup =
        std::clamp(static_cast<std::uint64_t>(warmup_share * seconds / batch_seconds),
                   fewest_warmup_batches, max_warmup_batches);
    const double warmup_seconds = static_cast<double>(settings_.warmup) * batch_seconds;
    const double batches = std::clamp(max_run_share * goal_.budget_seconds / batch_seconds,
                                      fewest_measured_batches, wanted_batches);
    settings_.duration = std::chrono::nanoseconds(std::llround(
        1e9 * std::max({seconds - warmup_seconds, seconds / 2, batches * batch_seconds})));
    const ProcessorTimes before = processor_times();
    const BenchResult result = run_bench(settings_);
    return run_of(setting, result, taken_by_others(before, processor_times()));
  }

 private:
  void set(const TuneSetting& setting) {
    // Makes a runtime with exactly these workers, as in the trainer, because the number of workers
    // decides which NUMA nodes have workers.
    if (settings_.pipeline.runtime == nullptr ||
        settings_.pipeline.runtime->workers() != setting.workers) {
      settings_.pipeline.runtime = nullptr;
      const Ranks& ranks = settings_.pipeline.ranks.this_process;
      settings_.pipeline.runtime = make_runtime({.workers = setting.workers,
                                                 .local_rank = ranks.local_rank,
                                                 .local_world = ranks.local_world,
                                                 .kept_host_bytes = 0});
    }
    if (setting.device_share && setting.device_share != device_share_) {
      settings_.transform = settings_.transform_of_share(*setting.device_share);
      device_share_ = setting.device_share;
    }
    settings_.pipeline.batch_size = setting.batch_size;
    settings_.pipeline.slots.prefetch = setting.prefetch;
    settings_.pipeline.slots.micro_batches = setting.micro_batches;
    const double step_ms = goal_.step_ms * static_cast<double>(setting.batch_size) /
                           static_cast<double>(goal_.batch_size);
    settings_.step = std::chrono::nanoseconds(std::llround(step_ms * 1e6));
  }

  /// Estimates the time of a batch from the last run's time per sample, scaled to the setting's
  /// workers.
  double batch_seconds_of(const TuneSetting& setting) const {
    const double step_seconds = std::chrono::duration<double>(settings_.step).count();
    return std::max({step_seconds,
                     sample_seconds_ * static_cast<double>(setting.batch_size) / setting.workers,
                     1e-6});
  }

  TuneRun run_of(const TuneSetting& setting, const BenchResult& result, double disturbed) {
    const Report& report = result.report;
    TuneRun run;
    run.seconds = report.seconds;
    run.batches = report.batches;
    run.samples_per_second =
        report.seconds > 0 ? static_cast<double>(report.samples) / report.seconds : 0;
    if (goal_.step_ms > 0) run.device_idle = result.device_idle;
    run.stall_share = report.seconds > 0 ? report.stall.total_ms / 1e3 / report.seconds : 0;
    run.first_batch_ms = 1e3 * report.first_batch_seconds;
    run.batch_ms = result.batch_ms;
    run.pinned_bytes = report.memory.pinned_bytes;
    run.device_bytes = report.memory.device_bytes;
    const auto& peak = result.peak_rss_beyond_map;
    run.scratch_bytes.reset();
    if (peak && resident_before_)
      run.scratch_bytes =
          difference(*peak, *resident_before_ + run.pinned_bytes + run.device_bytes);
    run.disturbed = disturbed;
    run.warnings = report.warnings;
    if (run.samples_per_second > 0) sample_seconds_ = setting.workers / run.samples_per_second;
    return run;
  }

  BenchSettings settings_;
  const TuneGoal& goal_;
  const std::optional<std::size_t> resident_before_;
  /// Share that `settings_.transform` was made with; nullopt = not made here.
  std::optional<double> device_share_{};
  /// Time of one worker for one sample in the last run.
  double sample_seconds_ = 1e-3;
};

}  // namespace

TuneResult run_tune(const BenchSettings& settings, const TuneGoal& goal,
                    const std::function<void(const TuneSetting&)>& on_run) {
  const Clock::time_point begin = Clock::now();
  TuneResult result;
  result.dataset = settings.dataset->name();
  result.records = settings.dataset->size();
  result.recipe = settings.recipe;
  result.seed = settings.pipeline.seed;
  result.device = settings.device->device()->name();
  result.goal = goal;
  result.goal.tune_device_share = settings.transform_of_share != nullptr;
  const Topology topology = read_topology();
  result.machine = describe_machine(topology);
  // Limits batches to the dataset's size, because larger ones would only repeat records. Limits
  // memory to half the machine's, because more would evict the dataset from the page cache.
  result.goal.max_batch_size =
      std::max<std::size_t>(goal.batch_size, std::min(goal.max_batch_size, result.records));
  result.goal.max_memory_bytes =
      std::min<std::size_t>(goal.max_memory_bytes, result.machine.memory_bytes / 2);

  Measuring measuring(settings, result.goal);
  // The first run warms up the page cache and the processor; its result does not count.
  TuneSetting first{.workers = goal.max_workers, .batch_size = goal.batch_size};
  if (result.goal.tune_device_share) first.device_share = 1;
  const auto report_setting = [&](const TuneSetting& setting) {
    if (on_run) on_run(setting);
  };
  report_setting(first);
  measuring.run(first, std::min(1.0, goal.budget_seconds / 20));
  result.findings =
      search_settings(result.goal, {.measure =
                                        [&](const TuneSetting& setting, double seconds) {
                                          report_setting(setting);
                                          return measuring.run(setting, seconds);
                                        },
                                    .elapsed = [&] { return seconds_since(begin); }});
  if (const auto share = result.findings.chosen.device_share; share && !result.recipe.empty())
    result.recipe = settings.transform_of_share(*share)->description();
  return result;
}

}  // namespace millrace::cli
