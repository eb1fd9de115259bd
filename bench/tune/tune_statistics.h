// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tune/tune_result.h"

namespace millrace::cli {

/// A step counts as fed while the device is idle for no more than this share of the time.
constexpr double fed_idle = 0.02;
/// A run counts as disturbed when other programs took more than this share of the processors.
constexpr double disturbed_share = 0.03;
/// A gain below this share is noise, however often it was measured.
constexpr double least_gain = 0.02;
/// So many runs are enough where they agree, and no setting gets more than the second number for
/// one question; where some were disturbed, the third.
constexpr std::size_t few_runs = 3;
constexpr std::size_t most_runs = 7;
constexpr std::size_t most_disturbed_runs = 10;

enum class Confidence { percent_95, percent_99 };
/// Quantiles of Student's t, one-sided.
double student_t(double degrees_of_freedom, Confidence confidence);

/// Those that count: disturbed runs are set aside while at least `few_runs` others are left; on a
/// machine that is never quiet all count. Runs that began before `since_seconds` are left out.
std::vector<const TuneRun*> counting_runs(std::span<const TuneRun> runs, double since_seconds = 0);

/// Runs that began before `since_seconds` are left out.
TuneSummary summarise(std::span<const TuneRun> runs, double since_seconds = 0);

/// Yes: the upper bound of the mean idle is at most `fed_idle`, by at least `few_runs` runs. No:
/// the lower bound is above it, by at least two runs that were not disturbed or by `most_runs`.
Feeds feeds_step(const TuneSummary& summary);

/// Whether one mean is above another: by how much of the other, beyond noise or not.
struct Comparison {
  /// The first is higher, with 99% confidence (Welch's t-test) and by at least `least_gain`. Many
  /// pairs are compared, so 95% would find gains by chance.
  bool higher = false;
  /// More runs would hardly change that: it is higher, or, with 95% confidence, not by more
  /// than 1.5 x `least_gain`.
  bool certain = false;
};
Comparison compare(Mean first, std::size_t first_runs, Mean second, std::size_t second_runs);
/// Of throughput.
Comparison compare_rates(const TuneSummary& first, const TuneSummary& second);

}  // namespace millrace::cli
