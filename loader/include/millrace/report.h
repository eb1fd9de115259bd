// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

/// A distribution of durations, in milliseconds. Percentiles are exact to 1%.
struct Durations {
  std::uint64_t count = 0;
  double total_ms = 0;
  double p50_ms = 0;
  double p95_ms = 0;
  double p99_ms = 0;
  double max_ms = 0;
};

/// A stage that the workers run.
struct StageReport {
  std::string name;
  double busy_seconds = 0;
  /// Of the time workers spent on samples, 0 to 1.
  double share = 0;
};

struct BadRecord {
  std::uint64_t index = 0;
  std::string key;
  std::string reason;
};

/// Bytes of all slots. They follow from the options and are taken before the run begins; the workers' scratch comes on top.
struct MemoryReport {
  std::size_t pinned_bytes = 0;
  std::size_t device_bytes = 0;
};

/// What a pipeline did in a stretch of time.
struct Report {
  double seconds = 0;
  /// Handed out by `next`.
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  /// Made by workers, handed out or not.
  std::uint64_t samples_made = 0;
  /// Bytes of the records that were read for them.
  std::uint64_t encoded_bytes = 0;
  std::uint64_t copied_bytes = 0;

  /// Per call of `next`, and per further part of a batch waited for: time it waited for data that was not made yet.
  Durations stall;
  /// Per call of `next`: time it waited for a slot, all being in use by work that the trainer has queued.
  Durations ahead;
  /// From the pipeline's start to the first batch handed out; 0 while there is none.
  double first_batch_seconds = 0;

  /// "read", then the transform's own.
  std::vector<StageReport> stages;
  unsigned workers = 0;
  /// Time spent on this pipeline's samples / (workers x seconds).
  double worker_utilization = 0;
  /// Whether workers are bound to the processors of their NUMA node.
  bool workers_bound = false;

  std::uint64_t bad_records = 0;
  /// The first 100 of them.
  std::vector<BadRecord> bad_record_list;

  MemoryReport memory;
};

/// What holds a run up.
enum class Bound { step, read, transform, copy, trainer };

/// The stage that bounds a run, and a sentence that says so with the number behind it.
struct Verdict {
  Bound bound = Bound::step;
  std::string stage;
  std::string text;
};

/// Judges a run. `device_idle` is the share of time (0 to 1) the device's compute stream had nothing to run, or below 0 where
/// there was no step to wait for data.
Verdict judge(const Report& report, double device_idle);

}  // namespace millrace
