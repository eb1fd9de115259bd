// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace millrace::cli {

/// What was measured: milliseconds per batch, a value per round; the rounds' values at the same
/// place were taken one after the other, so that a slow spell of the machine is in all of them.
struct PhaseTimes {
  /// Steps queued one after the other, nothing else.
  std::vector<double> step{};
  /// A trainer that has every step's batch on the device already.
  std::vector<double> ready_batch{};
  /// Every batch is copied, but none has to be read or made.
  std::vector<double> copies{};
  /// The whole loader, with records in the page cache.
  std::vector<double> loader{};
  /// The whole loader over an epoch from its start (see `from_start_ms`), with records in the page
  /// cache, and with records that come from storage. Both are empty if the page cache could not be
  /// emptied.
  std::vector<double> warm_pass{};
  std::vector<double> cold_pass{};
};

/// A time that was measured several times, or the difference of two: milliseconds.
struct Repeated {
  double mean = 0;
  /// Standard deviation of the values.
  double deviation = 0;
  /// Half of the 95% confidence interval of the mean (Student's t); infinite for a single value.
  double noise = 0;
};
Repeated repeated(const std::vector<double>& values);

/// Milliseconds per batch of an epoch that begins with a start, from a pass of `pass_batches` over
/// a part of it or all: `first_ms` from the start to the first batch, which an epoch has once, and
/// `rest_ms` from there to the last one.
double from_start_ms(double first_ms, double rest_ms, double pass_batches, double epoch_batches);

/// Where the time of an epoch goes.
enum class EpochPart {
  compute,      ///< the device's steps
  trainer,      ///< what the trainer's thread adds to them
  copy,         ///< waiting for copies to the device
  preparation,  ///< waiting for samples to be made
  fetch,        ///< waiting for storage
};

struct EpochShare {
  EpochPart part = EpochPart::compute;
  /// Of the rounds' differences.
  Repeated measured{};
  /// Whether the difference is no larger than its noise. Never so for compute.
  bool within_noise = false;
  /// Whether the noise hides what matters: within noise, and the noise is 2% of an epoch or more.
  /// The difference then counts as it was measured; one that is within a smaller noise counts as
  /// none.
  bool unsure = false;
  /// Milliseconds per batch that count.
  double batch_ms = 0;
  /// Of the time of an epoch that counts, 0 to 1.
  double share = 0;
};

/// The time of an epoch, divided up. Fetch is missing if no cache was cold.
struct StallAccount {
  /// In the order of `EpochPart`.
  std::vector<EpochShare> parts;
  /// Sum of the parts.
  double batch_ms = 0;

  /// Null for a part that was not measured.
  const EpochShare* find(EpochPart part) const;
  /// Of the epoch's time, 0 to 1; 0 if it was not measured.
  double share(EpochPart part) const;
  /// Share of all but compute: the device waits.
  double waiting() const;
  /// Whether any part is unsure.
  bool unsure() const;
};

/// Takes differences of phases, round by round:
///     compute      step
///     trainer      ready_batch - step
///     copy         copies - ready_batch
///     preparation  loader - copies
///     fetch        cold_pass - warm_pass
/// The method of differences is that of DS-Analyzer (Mohan, Phanishayee, Raniwala, Chidambaram:
/// "Analyzing and Mitigating Data Stalls in DNN Training", VLDB 2021), which measures a step
/// without data, with data in memory, and with data in storage. Throws `Error`
/// (`invalid_argument`) if a phase has no values or another number of them than the others.
StallAccount account_stalls(const PhaseTimes& times);

}  // namespace millrace::cli
