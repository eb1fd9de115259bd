// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// A stage of the road, over the time that is reported. The stages that workers run ("read", then
/// the transform's) share the workers' waiting: a worker runs them in turn.
struct StageReport {
  std::string name{};
  /// How many threads or streams run it: the active workers (a mean), 1 for "copy", "convert" and
  /// "trainer".
  double lanes = 0;
  double busy_seconds = 0;
  /// Nothing to work on: no planned batch (workers), no made part ("copy"), no copied part
  /// ("convert"), no batch made ("trainer": its stalls). Seconds over all lanes.
  double waiting_input_seconds = 0;
  /// Nowhere to put it: no free host slot (workers), no free slot on the device ("copy",
  /// "convert"), the trainer itself ahead of the device ("trainer").
  double waiting_output_seconds = 0;
  /// Busy / (lanes x seconds), 0 to 1.
  double occupancy = 0;
  /// Of the time workers spent on samples, 0 to 1; 0 for "copy", "convert" and "trainer".
  double share = 0;
  /// Each time it ran: per sample (workers), per part ("copy", "convert"), between two calls of
  /// `next` ("trainer").
  Durations each{};
};

struct BadRecord {
  std::uint64_t index = 0;
  std::string key;
  std::string reason;
};

/// Bytes of all slots. They follow from the options and are taken before the run begins; the
/// workers' scratch comes on top.
struct MemoryReport {
  std::size_t pinned_bytes = 0;
  /// Device slots and staging slots.
  std::size_t device_bytes = 0;
  /// Of `device_bytes`: the two staging slots, where batches are converted or come in several
  /// parts.
  std::size_t staging_bytes = 0;
};

/// The part that one NUMA node's workers and slots have in a run.
struct NodeReport {
  /// Operating system's number.
  int node = 0;
  unsigned workers = 0;
  /// Whether they are bound to the node's processors.
  bool workers_bound = false;
  /// Host slots: filled by its workers, and by others' that have nothing of their own to do.
  std::size_t slots = 0;
  /// Samples made in its slots, by its own workers and by others.
  std::uint64_t samples = 0;
  std::uint64_t samples_by_helpers = 0;
  /// Whether all memory of its slots lies on it; none where the system does not tell, and without
  /// slots.
  std::optional<bool> memory_on_node{};
};

/// What holds a run up.
enum class Bound {
  step,       ///< the device's step: the loader feeds it
  trainer,    ///< what the trainer's thread does between steps
  storage,    ///< reading records
  transform,  ///< a stage of the transform: decode, augment
  copy,       ///< copies to the device
  convert,    ///< conversions on the device
  cores,      ///< workers wait for processors
};

/// Which stage bounds a run, the number behind it, and what to change.
struct Verdict {
  Bound bound = Bound::trainer;
  /// "step", "trainer", "read", a stage of the transform's, "copy", "convert" or "cores".
  std::string stage{};
  /// The number behind it: the share of time (0 to 1) that `text` names.
  double share = 0;
  /// Amdahl's limit: how many times faster the run gets at most with any number of further workers
  /// (on cores of their own); 1 = not at all. What then bounds it is `next_bound`.
  double speedup_limit = 1;
  std::string next_bound{};
  /// A sentence with the stage and the number, and one with what to change. For people.
  std::string text{};
  std::string advice{};
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

  /// Per call of `next`, and per further part of a batch waited for: time it waited for data that
  /// was not made yet.
  Durations stall;
  /// Per call of `next`: time it waited for a slot, all being in use by work that the trainer has
  /// queued.
  Durations ahead;
  /// From the pipeline's start to the first batch handed out; 0 while there is none.
  double first_batch_seconds = 0;

  /// "read", the transform's own, "copy" (on a device that copies), "convert" (where batches are
  /// converted or come in several parts, which are then put together on the device), "trainer": in
  /// the order of the road.
  std::vector<StageReport> stages;
  /// Of the nodes that it runs on (`SlotOptions::nodes`).
  unsigned workers = 0;
  /// Of them took part, a mean over time: fewer where `RuntimeOptions::adaptive` lets the need
  /// decide.
  double active_workers = 0;
  /// Processors this process (of several ranks on a host, this rank) may use on these nodes, and
  /// how many of its processors are left free for threads that launch kernels.
  unsigned cores = 0;
  unsigned launch_cores = 0;
  /// Time spent on this pipeline's samples / (active workers x seconds).
  double worker_utilization = 0;
  /// Share of the active workers' time in which they could run but the operating system gave the
  /// processor to others, 0 to 1; none where it does not tell (Linux: /proc/.../schedstat).
  std::optional<double> worker_delay;
  /// Means over time: made batches that wait for the trainer, and free host slots.
  double ready_batches = 0;
  double free_slots = 0;
  /// Whether workers are bound to the processors of their NUMA node.
  bool workers_bound = false;
  /// The nodes that it runs on.
  std::vector<NodeReport> nodes;
  /// What is not as it should be, a sentence each, for people: `Runtime::warnings`, memory that is
  /// not on its node, a high `worker_delay`. Empty when all is well.
  std::vector<std::string> warnings;

  std::uint64_t bad_records = 0;
  /// The first 100 of them.
  std::vector<BadRecord> bad_record_list;

  MemoryReport memory;

  /// From what the pipeline sees by itself; `judge` with the device's idle time is surer.
  Verdict verdict;
};

/// Judges a run. `device_idle` is the share of time (0 to 1) the device's compute stream had
/// nothing to run, where that is known: a pipeline itself does not see it.
Verdict judge(const Report& report, std::optional<double> device_idle = std::nullopt);

}  // namespace millrace
