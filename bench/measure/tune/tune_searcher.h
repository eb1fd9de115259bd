// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "measure/tune/tune_rounds.h"
#include "measure/tune/tune_values.h"

namespace millrace::cli {

/// Most rounds of a race whose settings cannot be told apart: first of all values of a variable,
/// then of those that may be the best, and of two values or of neighbouring settings.
constexpr std::size_t all_values_rounds = 24;
constexpr std::size_t best_values_rounds = 200;
constexpr std::size_t pair_rounds = 12;

/// The search of `search_settings`. For one call of `run`.
class TuneSearcher {
 public:
  TuneSearcher(const TuneGoal& goal, const TuneProbe& probe);
  TuneFindings run();

 private:
  using Points = TuneRounds::Points;

  /// Time at which the search of a variable ends, in seconds since the tune began.
  double end_of(TuneVariable variable) const;
  void begin(TuneVariable variable);
  TunePhase& end();
  const TuneSetting& setting(std::size_t point) const { return rounds_.setting(point); }
  /// Value of the current variable.
  std::size_t value_at(std::size_t point) const { return value_of(setting(point), variable_); }
  /// Point of `base_` with this value of the current variable; added if it is new.
  std::size_t point_of(std::size_t value) {
    return rounds_.point(changed(base_, variable_, value));
  }
  Points points_of(const Values& values);
  /// Points with runs that differ from `base_` only in the current variable, sorted by its value.
  Points tried() const;

  TuneRounds::Race race(Points points, std::size_t max_rounds) {
    return rounds_.race(std::move(points), max_rounds, variable_ == TuneVariable::prefetch);
  }
  /// Returns whether the measurements show that `point` has a higher rate than `other`.
  bool is_faster(std::size_t point, std::size_t other) {
    const TuneRounds::Race pair = race({other, point}, pair_rounds);
    return pair.clear && pair.chosen == point;
  }
  /// These functions return one of the values, or a value between two of them.
  std::optional<std::size_t> smallest_that_feeds(const Values& values);
  std::size_t smallest_at_best_rate(Values values);

  void search_workers();
  /// Chooses the workers for `base_`. Sets `chosen_`, `feeds_` and `base_`.
  void choose_workers();
  void search_device_share();
  std::size_t race_shares(const Points& points);
  /// Returns whether more workers may make the trainer's step come more often.
  bool has_slow_steps() const;
  void search_prefetch();
  void search_micro_batches();
  std::string micro_batches_gain(std::size_t more) const;
  void search_batch_size();
  bool is_limited() const { return goal_.p99_ms || goal_.memory_bytes; }
  /// Measures a batch size. Returns the reason to reject it: it exceeds a limit, does not feed the
  /// step, or gives no higher rate. Empty if it is accepted.
  std::string reason_to_reject(std::size_t batch_size);

  void confirm_chosen();
  void compare_with_neighbours();
  void update_phases();
  TuneFindings finish();

  const TuneGoal& goal_;
  const TuneProbe& probe_;
  const bool batch_size_is_searched_;
  TuneRounds rounds_;
  TuneFindings findings_;
  /// The current variable, and the setting from which the search starts.
  TuneVariable variable_ = TuneVariable::workers;
  TuneSetting base_;
  /// The best point so far, and whether it feeds the step.
  std::size_t chosen_ = 0;
  bool feeds_ = false;
};

}  // namespace millrace::cli
