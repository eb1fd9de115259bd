// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "diagnose/stall_account.h"
#include "measure/bench_run.h"

namespace millrace::cli {

struct DiagnoseSettings {
  /// Opens the dataset, many times; nobody else in this process may have it open, or its pages
  /// cannot be dropped from the page cache. Without it the bench's dataset is used, which stays
  /// open: there are no cold passes.
  std::function<std::shared_ptr<const Dataset>()> open{};
  /// The pipeline and the step, and how many batches or how long each phase of a round is; its
  /// dataset is not used if one is opened.
  BenchSettings bench;
  /// How often each phase is measured, in turn with the others.
  unsigned rounds = 3;
};

/// The passes over records that are read for the first time.
struct ColdPasses {
  /// A sentence that says why there are none; empty if there are.
  std::string missing{};
  /// Of the dataset's files, what stayed in the page cache at most, 0 to 1.
  double kept = 0;
  /// Fetched from storage in all passes, and their time; nullopt if the system does not count.
  std::optional<std::uint64_t> storage_bytes{};
  double seconds = 0;
};

struct DiagnoseResult {
  std::uint64_t records = 0;
  std::uintmax_t dataset_bytes = 0;
  /// So many records, drawn at random, stand for the dataset; a pass reads all of them once, in so
  /// many batches.
  std::uint64_t sampled_records = 0;
  std::uint64_t pass_batches = 0;
  unsigned passes_per_round = 0;
  PhaseTimes times;
  ColdPasses cold;
  /// Fetched from storage while records should all have been in the page cache; nullopt if the
  /// system does not count.
  std::optional<std::uint64_t> warm_storage_bytes;
  /// Of the last round's loader phase.
  Report report;
  /// Share of the time that the stream had no step to run in all loader phases, 0 to 1: the stalls
  /// but fetch, seen another way.
  double device_idle = 0;
  /// The most that others took of the processors in a loader phase (see `taken_by_others`).
  double disturbed = 0;
};

/// Measures all phases in turn, `rounds` times. If the page cache cannot be emptied, the cold
/// passes are left out and `cold` says why. Throws what the pipeline throws.
DiagnoseResult run_diagnose(const DiagnoseSettings& settings);

}  // namespace millrace::cli
