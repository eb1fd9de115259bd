// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>

#include "measure/tune/tune_search.h"

namespace millrace::cli {

/// A simulated machine: throughput as a function of the setting, noise, drift, and a clock that
/// only runs advance.
struct FakeMachine {
  /// The loader's samples per second without a step.
  std::function<double(const TuneSetting&)> rate = [](const TuneSetting& setting) {
    return 1000.0 * setting.workers;
  };
  /// Samples per second of the step, if the loader's work on the device makes it slower.
  std::function<double(const TuneSetting&)> slowed_step{};
  /// Relative standard deviation of a run's rate.
  double noise = 0.005;
  /// All rates rise and fall by this share, with a period of `drift_seconds`.
  double drift = 0;
  double drift_seconds = 40;
  /// Share of runs that other programs disturb.
  double disturbed = 0;
  double disturbed_loss = 0.4;
  double first_batch_ms = 60;
  /// Time to the first batch, if it depends on the setting.
  std::function<double(const TuneSetting&)> first_batch{};
  std::size_t bytes_per_sample = 150'000;
  /// Whether the system tells the workers' memory.
  bool tells_scratch = true;
  double overhead_seconds = 0.1;

  TuneGoal goal{.max_workers = 8};
  unsigned seed = 1;
  double now = 0;
  std::size_t runs = 0;

  TuneFindings tune() {
    random_.seed(seed);
    normal_.reset();
    return search_settings(goal, {.measure =
                                      [this](const TuneSetting& setting, double seconds) {
                                        ++runs;
                                        now += seconds + overhead_seconds;
                                        return run_of(setting, seconds);
                                      },
                                  .elapsed = [this] { return now; }});
  }

  double needed() const {
    return goal.step_ms > 0 ? static_cast<double>(goal.batch_size) * 1e3 / goal.step_ms : 1e300;
  }
  /// Samples per second of the trainer with a setting, without disturbances.
  double worth(const TuneSetting& setting) const {
    return std::min(rate(setting), step_rate(setting));
  }
  /// Samples per second of the step with a setting.
  double step_rate(const TuneSetting& setting) const {
    return slowed_step ? slowed_step(setting) : needed();
  }

 private:
  double normal() { return normal_(random_); }

  TuneRun run_of(const TuneSetting& setting, double seconds) {
    const auto samples = static_cast<double>(setting.batch_size);
    const bool is_disturbed = uniform_(random_) < disturbed;
    const double phase = 2 * std::numbers::pi * now / drift_seconds + seed;
    double made =
        rate(setting) * std::max(0.05, 1 + noise * normal()) * (1 + drift * std::sin(phase));
    if (is_disturbed) made *= 1 - disturbed_loss;
    TuneRun run;
    run.seconds = seconds;
    if (!tells_scratch) run.scratch_bytes.reset();
    const double taken = step_rate(setting);
    run.samples_per_second = std::min(made, taken);
    run.batches = static_cast<std::uint64_t>(seconds * run.samples_per_second / samples) + 1;
    if (goal.step_ms > 0) run.device_idle = std::max(0.0, 1 - made / taken);
    run.first_batch_ms =
        (first_batch ? first_batch(setting) : first_batch_ms) * (1 + 0.02 * normal());
    run.batch_ms.assign(run.batches, 1e3 * samples / run.samples_per_second);
    run.pinned_bytes = setting.prefetch * setting.batch_size * bytes_per_sample;
    run.device_bytes = 2 * setting.batch_size * bytes_per_sample;
    run.disturbed = is_disturbed ? disturbed_loss : 0;
    return run;
  }

  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
};

inline double saturating(double workers, double most) { return std::min(workers, most) * 1000; }

/// Time of a step of 64 samples at this many samples per second.
inline double step_for(double samples_per_second) { return 64e3 / samples_per_second; }

}  // namespace millrace::cli
