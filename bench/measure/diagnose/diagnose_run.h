// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "measure/bench/bench_run.h"
#include "measure/diagnose/stall_account.h"

namespace millrace::cli {

struct DiagnoseSettings {
  /// Opens the dataset; called many times. Nothing else in the process may have the dataset open:
  /// else its pages cannot be dropped from the page cache. Empty = the bench's dataset is used and
  /// stays open, without cold passes.
  std::function<std::shared_ptr<const Dataset>()> open{};
  /// The pipeline and the step, and the batches or the duration of each phase in a round. Its
  /// dataset is not used if `open` is set.
  BenchSettings bench;
  /// Number of rounds. Each measures every phase once.
  unsigned rounds = 3;
};

/// Result of the passes that read records from storage.
struct ColdPasses {
  /// The reason, a sentence, if cold passes are missing; else empty.
  std::string missing{};
  /// Largest share of the dataset's pages that stayed in the page cache, 0 to 1.
  double kept = 0;
  /// Bytes fetched from storage in all cold passes, and their time. Nullopt if the system does not
  /// count.
  std::optional<std::uint64_t> storage_bytes{};
  double seconds = 0;
};

struct DiagnoseResult {
  std::uint64_t records = 0;
  std::uintmax_t dataset_bytes = 0;
  /// Number of records that are drawn at random to represent the dataset. A pass reads each once,
  /// in `pass_batches` batches.
  std::uint64_t sampled_records = 0;
  std::uint64_t pass_batches = 0;
  unsigned passes_per_round = 0;
  PhaseTimes times;
  ColdPasses cold;
  /// Bytes fetched from storage in warm phases, in which all records should be in the page cache.
  /// Nullopt if the system does not count.
  std::optional<std::uint64_t> warm_storage_bytes;
  /// Report of the last round's loader phase.
  Report report;
  /// Share of the time without a step on the stream in all loader phases, 0 to 1. It is another
  /// measure of all stalls except fetch.
  double device_idle = 0;
  /// Largest share of the processors that other programs took in a loader phase (see
  /// `taken_by_others`).
  double disturbed = 0;
};

/// Measures all phases in turn, `rounds` times. If the page cache cannot be emptied, the cold
/// passes are left out and `cold` has the reason. Throws the errors of the pipeline.
DiagnoseResult run_diagnose(const DiagnoseSettings& settings);

}  // namespace millrace::cli
