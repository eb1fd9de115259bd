// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/measure.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measure/machine/machine.h"
#include "measure/tune/usl_fit.h"

namespace millrace::cli {

/// The variables that the search chooses.
using TuneSetting = measure::Setting;

enum class TuneVariable { workers, prefetch, micro_batches, batch_size, device_share };
/// Value of a variable in a setting; of `device_share` in percent.
std::size_t value_of(const TuneSetting& setting, TuneVariable variable);

/// One run of a setting: with its own pipeline, warmed up, then measured.
struct TuneRun {
  /// Round of the run. Settings to compare run in turn: the runs of one round follow each other.
  std::size_t round = 0;
  /// Start of the run, in seconds since the tune began.
  double at_seconds = 0;
  /// Duration of the measurement.
  double seconds = 0;
  std::uint64_t batches = 0;
  double samples_per_second = 0;
  /// Share of the time without a step on the device, 0 to 1; nullopt without a step.
  std::optional<double> device_idle{};
  /// Share of the time that `next()` waited for data, 0 to 1.
  double stall_share = 0;
  /// Time from the pipeline's start to its first batch.
  double first_batch_ms = 0;
  /// Time of each measured batch, from one hand-out to the next.
  std::vector<double> batch_ms{};
  std::size_t pinned_bytes = 0;
  std::size_t device_bytes = 0;
  /// Growth of the process's other memory: the workers' scratch. Nullopt if the system does not
  /// tell (Linux: /proc).
  std::optional<std::size_t> scratch_bytes = 0;
  /// Share of the machine's processor time, 0 to 1, that other programs and machines took while no
  /// processor was free.
  double disturbed = 0;
  /// The pipeline's `Report::warnings`.
  std::vector<std::string> warnings{};

  /// Total memory, without the scratch if that is unknown.
  std::size_t memory_bytes() const {
    return pinned_bytes + device_bytes + scratch_bytes.value_or(0);
  }
};

/// The search's access to the machine, which tests replace by simulated machines.
struct TuneProbe {
  /// Makes one run of a setting, of about this many seconds including the warm-up. An exception
  /// ends the tune.
  std::function<TuneRun(const TuneSetting&, double seconds)> measure;
  /// Seconds since the tune began.
  std::function<double()> elapsed;
};

/// Mean and standard deviation (of a sample, n - 1; 0 for a single value).
struct Mean {
  double mean = 0;
  double sd = 0;
};

/// Statistics of a setting's runs. Runs that other programs disturbed are set aside if at least
/// three others are left.
struct TuneSummary {
  /// Numbers of runs that count, of disturbed ones among these, and of runs set aside.
  std::size_t runs = 0;
  std::size_t disturbed = 0;
  std::size_t set_aside = 0;
  /// Batches in the runs that count.
  std::uint64_t batches = 0;
  Mean samples_per_second{};
  /// Percentiles over the batches of all runs that count.
  double batch_p50_ms = 0;
  double batch_p95_ms = 0;
  double batch_p99_ms = 0;
  /// nullopt without a step.
  std::optional<Mean> device_idle{};
  /// Bounds of the mean idle share, each with 95% confidence (Student's t), 0 to 1.
  double idle_low = 0;
  double idle_high = 1;
  Mean first_batch_ms{};
  /// Largest memory of a run: pinned, device and scratch.
  std::size_t memory_bytes = 0;
};

/// Whether a setting feeds the step: `yes` and `no` with 95% confidence.
enum class Feeds { no_step, yes, no, unsure };

/// A setting with its runs. It has none if the time was over before the first one.
struct TunePoint {
  TuneSetting setting{};
  std::vector<TuneRun> runs{};
  TuneSummary summary{};
  Feeds feeds = Feeds::no_step;
};

/// The search over one variable with the others fixed.
struct TunePhase {
  TuneVariable variable = TuneVariable::workers;
  /// Indices into `points` of the settings measured for it, sorted by the variable's value.
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

/// Goals and limits of a tune.
struct TuneGoal {
  /// Time of the trainer's step for a batch of `batch_size`; 0 = no step. For other batch sizes it
  /// is proportional.
  double step_ms = 0;
  unsigned max_workers = 1;
  std::size_t batch_size = 64;
  /// Whether to search the batch size. Setting one of the two limits below turns this on.
  bool tune_batch_size = false;
  /// Whether to search the share of images that the device makes.
  bool tune_device_share = false;
  std::optional<double> p99_ms{};
  std::optional<std::size_t> memory_bytes{};
  /// Upper bounds for the batch sizes to try, independent of the limits.
  std::size_t max_batch_size = 1 << 20;
  std::size_t max_memory_bytes = SIZE_MAX;
  double budget_seconds = 100;

  /// Samples per second that the step uses; 0 without a step.
  double needed_samples_per_second() const {
    return step_ms > 0 ? static_cast<double>(batch_size) * 1e3 / step_ms : 0;
  }
};

/// Result of the search.
struct TuneFindings {
  TuneOutcome outcome = TuneOutcome::no_step;
  TuneSetting chosen{};
  /// Its index into `points`.
  std::size_t chosen_point = 0;
  std::vector<TunePoint> points{};
  /// In the order of the search.
  std::vector<TunePhase> phases{};
  /// Fit of the rates over worker counts, from runs in which the loader and not the step was the
  /// limit.
  UslFit fit{};
  /// Fewest workers that reach 95% of the fit's highest rate, within the allowed number of workers.
  unsigned knee = 0;
  /// Variables for which noise hid the best value. For these the search chose the best mean, or for
  /// prefetch the larger value.
  std::vector<TuneVariable> not_told_apart{};
  /// True if no setting feeds the step with certainty, noise hid the best value, or other programs
  /// disturbed runs.
  bool doubtful = false;
  std::vector<std::string> warnings{};
  /// `verdict`: the choice, in sentences. `why`: the same with the warnings and the reasons of each
  /// phase.
  std::string verdict{};
  std::string why{};
  /// Values that could not be measured within the budget, a sentence each.
  std::vector<std::string> not_measured{};
  /// Planned length of a run, and the total time.
  double run_seconds = 0;
  double total_seconds = 0;
};

/// All contents of a `tune` result, in any format.
struct TuneResult {
  std::string dataset;
  std::uint64_t records = 0;
  std::string recipe_name;
  /// As JSON; empty if unknown.
  std::string recipe;
  /// Time of a trainer's own step alone, for `goal.batch_size`; nullopt for other steps. `goal` has
  /// no step if throughput decides.
  std::optional<double> user_step_ms{};
  /// "host", "cuda:0" ...
  std::string device = "host";
  std::uint64_t seed = 0;
  TuneGoal goal;
  TuneFindings findings;
  Machine machine;
};

}  // namespace millrace::cli
