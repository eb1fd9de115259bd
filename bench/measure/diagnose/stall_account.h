// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace millrace::cli {

/// Measured times of the phases: milliseconds per batch, one value per round. Values of the same
/// round were measured in succession, so that a slow period of the machine affects all of them.
struct PhaseTimes {
  /// Steps queued one after the other, without anything else.
  std::vector<double> step{};
  /// A trainer with every step's batch already on the device.
  std::vector<double> ready_batch{};
  /// Every batch is copied, but nothing is read or made.
  std::vector<double> copies{};
  /// The whole loader, with records in the page cache.
  std::vector<double> loader{};
  /// The whole loader over an epoch from its start (see `from_start_ms`): with records in the page
  /// cache, and with records from storage. Both are empty if the page cache could not be emptied.
  std::vector<double> warm_pass{};
  std::vector<double> cold_pass{};
};

/// Statistics of a time that was measured several times, or of the difference of two, in
/// milliseconds.
struct Repeated {
  double mean = 0;
  /// Standard deviation of the values.
  double deviation = 0;
  /// Half the width of the 95% confidence interval of the mean (Student's t); infinite for a single
  /// value.
  double noise = 0;
};
Repeated repeated(const std::vector<double>& values);

/// Milliseconds per batch of an epoch that begins with a pipeline's start, extrapolated from a pass
/// of `pass_batches`. `first_ms` is the time from the start to the first batch, which occurs once
/// in an epoch. `rest_ms` is the time from there to the last batch.
double from_start_ms(double first_ms, double rest_ms, double pass_batches, double epoch_batches);

/// Parts of an epoch's time.
enum class EpochPart {
  compute,      ///< the device's steps
  trainer,      ///< what the trainer's thread adds to them
  copy,         ///< waiting for copies to the device
  preparation,  ///< waiting for samples to be made
  fetch,        ///< waiting for storage
};

struct EpochShare {
  EpochPart part = EpochPart::compute;
  /// Statistics of the rounds' differences.
  Repeated measured{};
  /// Whether the difference is at most its noise. Always false for compute.
  bool within_noise = false;
  /// Whether the result is too noisy: the difference is within noise, and the noise is 2% of an
  /// epoch or more. The difference then counts as measured. A difference within a smaller noise
  /// counts as 0.
  bool unsure = false;
  /// Milliseconds per batch that this part counts for.
  double batch_ms = 0;
  /// Share of the sum of all parts, 0 to 1.
  double share = 0;
};

/// An epoch's time divided into parts. Fetch is missing if no cache was cold.
struct StallAccount {
  /// In the order of `EpochPart`.
  std::vector<EpochShare> parts;
  /// Sum of the parts.
  double batch_ms = 0;

  /// Returns null for a part that was not measured.
  const EpochShare* find(EpochPart part) const;
  /// Share of the epoch, 0 to 1; 0 for a part that was not measured.
  double share(EpochPart part) const;
  /// Share of all parts except compute, in which the device waits.
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
/// (`invalid_argument`) if a phase has no values, or not as many as the others.
StallAccount account_stalls(const PhaseTimes& times);

}  // namespace millrace::cli
