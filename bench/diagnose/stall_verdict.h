// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/report.h>

#include <cstdint>

#include "diagnose/stall_account.h"

namespace millrace::cli {

/// What a part of an epoch is called.
struct PartNames {
  /// In JSON.
  const char* key;
  /// In the table.
  const char* row;
  /// In a sentence, for what the device waits for.
  const char* stall;
  /// In `Verdict::stage`.
  const char* stage;
  Bound bound;
};
const PartNames& names_of(EpochPart part);

/// What an account was measured with: it decides what can be changed.
struct StallContext {
  /// Of the loader with records in the page cache: workers, cores and their stages.
  Report report{};
  std::uintmax_t dataset_bytes = 0;
  std::uintmax_t memory_bytes = 0;
};

/// Why the device waits: the largest stall, its share of an epoch, how many times faster more
/// workers make an epoch at most (they take away no more than the preparation stall), what holds
/// the run up then, and what to change. The device counts as fed below 2% of waiting. Of a dataset
/// that stays in the page cache, the fetch stall is named first only if there is no other: it
/// ends with the first epoch.
Verdict judge_stalls(const StallAccount& account, const StallContext& context);

/// Whether the page cache keeps a dataset once it was read: it takes at most half of the memory.
bool stays_cached(const StallContext& context);

}  // namespace millrace::cli
