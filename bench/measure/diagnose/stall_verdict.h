// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/report.h>

#include <cstdint>

#include "measure/diagnose/stall_account.h"

namespace millrace::cli {

/// Names of a part of an epoch.
struct PartNames {
  /// Key in JSON.
  const char* key;
  /// Name in the table.
  const char* row;
  /// Name in a sentence that says what the device waits for.
  const char* stall;
  /// Value of `Verdict::stage`.
  const char* stage;
  Bound bound;
};
const PartNames& names_of(EpochPart part);

/// Conditions of the measurement, which decide what can be changed.
struct StallContext {
  /// Report of the loader with records in the page cache: workers, cores and their stages.
  Report report{};
  std::uintmax_t dataset_bytes = 0;
  std::uintmax_t memory_bytes = 0;
};

/// Judges why the device waits. The verdict has the largest stall, its share of an epoch, and
/// advice. It also has the largest speedup of an epoch by more workers, which can only remove the
/// preparation stall, and the bound after that. The device counts as fed below 2% of waiting. If
/// the dataset stays in the page cache, the fetch stall ends with the first epoch: it is then named
/// first only if all others are absent.
Verdict judge_stalls(const StallAccount& account, const StallContext& context);

/// Whether the page cache keeps a dataset after reading it: the dataset is at most half of the
/// memory.
bool stays_cached(const StallContext& context);

}  // namespace millrace::cli
