// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/measure.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "tune/usl_fit.h"

namespace millrace::cli {

/// What is searched for.
using TuneSetting = measure::Setting;

enum class TuneVariable { workers, prefetch, micro_batches, batch_size };
/// The setting's value of the variable.
std::size_t value_of(const TuneSetting& setting, TuneVariable variable);

/// One run of a setting: a pipeline of its own, warmed up, then measured.
struct TuneRun {
  /// Settings that were compared ran in turn: the runs of one round followed each other.
  std::size_t round = 0;
  /// When it began, in seconds since the tune did.
  double at_seconds = 0;
  /// How long it was measured.
  double seconds = 0;
  std::uint64_t batches = 0;
  double samples_per_second = 0;
  /// Share of the time the device had no step to run, 0 to 1; nullopt without a step.
  std::optional<double> device_idle{};
  /// Share of the time `next()` waited for data that was not made, 0 to 1.
  double stall_share = 0;
  /// From the pipeline's start to its first batch.
  double first_batch_ms = 0;
  /// Time of each measured batch: from one handed out to the next.
  std::vector<double> batch_ms{};
  std::size_t pinned_bytes = 0;
  std::size_t device_bytes = 0;
  /// Growth of the process's other memory: the workers' scratch. Nullopt if the system does not
  /// tell (Linux: /proc).
  std::optional<std::size_t> scratch_bytes = 0;
  /// Share of the machine's processor time, 0 to 1, that other programs and machines took while
  /// none was left over.
  double disturbed = 0;
  /// Its `Report::warnings`.
  std::vector<std::string> warnings{};

  /// Without the scratch if that is unknown.
  std::size_t memory_bytes() const {
    return pinned_bytes + device_bytes + scratch_bytes.value_or(0);
  }
};

/// What the search knows of the world, so that it can be tried on made-up machines.
struct TuneProbe {
  /// Makes one run of a setting, of about so many seconds, warm-up included. What it throws ends
  /// the tune.
  std::function<TuneRun(const TuneSetting&, double seconds)> measure;
  /// Seconds since the tune began.
  std::function<double()> elapsed;
};

/// Mean and standard deviation (of the sample, n - 1; 0 of a single value).
struct Mean {
  double mean = 0;
  double sd = 0;
};

/// What the runs of a setting say together. Those that other programs disturbed are set aside if at
/// least three others are left.
struct TuneSummary {
  /// How many runs count, how many of these were disturbed, and how many do not count.
  std::size_t runs = 0;
  std::size_t disturbed = 0;
  std::size_t set_aside = 0;
  /// Batches in the runs that count.
  std::uint64_t batches = 0;
  Mean samples_per_second{};
  /// Of the batches of all runs that count.
  double batch_p50_ms = 0;
  double batch_p95_ms = 0;
  double batch_p99_ms = 0;
  /// nullopt without a step.
  std::optional<Mean> device_idle{};
  /// The bounds of the mean idle share, each with 95% confidence (Student's t), 0 to 1.
  double idle_low = 0;
  double idle_high = 1;
  Mean first_batch_ms{};
  /// The most that a run took: pinned, device and scratch.
  std::size_t memory_bytes = 0;
};

/// Whether a setting feeds the step: `yes` and `no` with 95% confidence.
enum class Feeds { no_step, yes, no, unsure };

/// A setting with its runs. It has none if the time was over before its first.
struct TunePoint {
  TuneSetting setting{};
  std::vector<TuneRun> runs{};
  TuneSummary summary{};
  Feeds feeds = Feeds::no_step;
};

/// The search over one variable, the others held.
struct TunePhase {
  TuneVariable variable = TuneVariable::workers;
  /// Indices of the settings that were measured for it into `points`, by the variable's value.
  std::vector<std::size_t> points{};
  std::size_t chosen = 0;
  std::string why{};
};

enum class TuneOutcome {
  feeds_step,     ///< The smallest setting that feeds the step was chosen.
  nothing_feeds,  ///< No setting surely feeds the step: the best mean throughput was chosen.
  no_step,        ///< No step was given: the knee of throughput was chosen.
  nothing_fits,   ///< No batch size keeps within the limits: the smallest tried was chosen.
};

/// What is asked of a tune.
struct TuneGoal {
  /// Time of the trainer's step for a batch of `batch_size`; 0 = none. Other batch sizes have their
  /// share of it.
  double step_ms = 0;
  unsigned max_workers = 1;
  std::size_t batch_size = 64;
  /// Whether the batch size is searched. It always is if one of the limits is given.
  bool tune_batch_size = false;
  std::optional<double> p99_ms{};
  std::optional<std::size_t> memory_bytes{};
  /// Bounds of the batch sizes that are tried, whatever the limits.
  std::size_t most_batch_size = 1 << 20;
  std::size_t most_memory_bytes = SIZE_MAX;
  double budget_seconds = 100;

  /// What the step takes; 0 without a step.
  double needed_samples_per_second() const {
    return step_ms > 0 ? static_cast<double>(batch_size) * 1e3 / step_ms : 0;
  }
};

/// What the search found.
struct TuneFindings {
  TuneOutcome outcome = TuneOutcome::no_step;
  TuneSetting chosen{};
  /// Its index into `points`.
  std::size_t chosen_point = 0;
  std::vector<TunePoint> points{};
  /// In the order of the search.
  std::vector<TunePhase> phases{};
  /// Of the worker counts' rates where the loader was the limit, and not the step.
  UslFit fit{};
  /// The fewest workers with 95% of the fit's highest rate up to the most workers that were
  /// allowed.
  unsigned knee = 0;
  /// Of these noise hid the best value: the best mean was taken, of prefetches the larger one.
  std::vector<TuneVariable> not_told_apart{};
  /// Nothing surely feeds the step, noise hid the best value, or other programs disturbed runs.
  bool doubtful = false;
  std::vector<std::string> warnings{};
  /// Sentences: the choice; the same with the warnings and the reasons of each phase.
  std::string verdict{};
  std::string why{};
  /// What could not be measured within the budget, a sentence each.
  std::vector<std::string> not_measured{};
  /// Planned length of a run, and what all took.
  double run_seconds = 0;
  double total_seconds = 0;
};

/// All that `tune` has to say, however it is written.
struct TuneResult {
  std::string dataset;
  std::uint64_t records = 0;
  std::string recipe_name;
  /// As JSON; empty if that is not known.
  std::string recipe;
  /// What a trainer's own step takes alone, of `goal.batch_size`; nullopt if it is no such one. The
  /// goal has no step where throughput decides.
  std::optional<double> own_step_ms{};
  /// "host", "cuda:0" ...
  std::string device = "host";
  std::uint64_t seed = 0;
  TuneGoal goal;
  TuneFindings findings;
  Machine machine;
};

}  // namespace millrace::cli
