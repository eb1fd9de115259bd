// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

// Threads: functions may be called from any thread at once. Lifetimes: everything here is plain
// data, which refers to nothing.

namespace MILLRACE_API millrace {

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
/// the transform's) share the workers' waiting, since a worker runs them in turn.
struct StageReport {
  std::string name{};
  /// How many threads or streams run it: the active workers (a mean), 1 for "copy", "convert" and
  /// "trainer".
  double lanes = 0;
  double busy_seconds = 0;
  /// Time, over all lanes, with nothing to work on: no planned batch (workers), no micro-batch made
  /// ("copy") or copied ("convert"), no batch made ("trainer": its stalls).
  double waiting_input_seconds = 0;
  /// Time, over all lanes, with nowhere to put it: no free host slot (workers), no free slot on the
  /// device ("copy", "convert"), the trainer itself ahead of the device ("trainer").
  double waiting_output_seconds = 0;
  /// Busy / (lanes x seconds), 0 to 1.
  double occupancy = 0;
  /// Its share of the time that workers spent on samples, 0 to 1; 0 for "copy", "convert" and
  /// "trainer".
  double share = 0;
  /// How long it took each time: per sample (workers), per micro-batch ("copy", "convert"), between
  /// two calls of `next` ("trainer").
  Durations each{};
};

struct BadRecord {
  std::uint64_t index = 0;
  std::string key;
  std::string reason;
};

/// The bytes of all slots. They follow from the options and are taken before the run begins; what
/// is kept of records and the workers' scratch come on top.
struct MemoryReport {
  std::size_t pinned_bytes = 0;
  /// Device slots and staging slots.
  std::size_t device_bytes = 0;
  /// Those of `device_bytes` that are the two staging slots, of which there are none unless batches
  /// are converted or come in several micro-batches.
  std::size_t staging_bytes = 0;
  /// What is noted of records by now (`PipelineOptions::index_bytes`), by all pipelines that share
  /// the notes. It comes on top, and grows in the first epoch.
  std::size_t index_bytes = 0;
  /// What the cache of samples takes by now (`PipelineOptions::cache_bytes`), of all pipelines that
  /// share it. It comes on top, too.
  std::size_t cache_bytes = 0;
  /// Host memory that the runtime keeps by now of ended pipelines for the next ones
  /// (`Runtime::host_memory`), over all devices. It comes on top.
  std::size_t kept_host_bytes = 0;
};

/// What samples were made of, where some are kept in memory (`PipelineOptions::cache_bytes`); else
/// both are 0.
struct CacheReport {
  /// Of what was kept.
  std::uint64_t hits = 0;
  /// Of their records, since nothing was kept of these.
  std::uint64_t misses = 0;
};

/// What one NUMA node's workers and slots do in a run.
struct NodeReport {
  /// Operating system's number.
  int node = 0;
  unsigned workers = 0;
  /// Whether they are bound to the node's processors.
  bool workers_bound = false;
  /// How many host slots it has, which its workers fill, and others' with nothing of their own to
  /// do.
  std::size_t slots = 0;
  /// Samples made in its slots, by its own workers and by others.
  std::uint64_t samples = 0;
  std::uint64_t samples_by_helpers = 0;
  /// Whether all memory of its slots lies on it; nullopt if the system does not tell or there are
  /// no slots.
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
  prefetch,   ///< too few batches ahead: the trainer waits, and no stage is busy all the time
};

/// Which stage bounds a run, the number behind it, and what to change.
struct Verdict {
  Bound bound = Bound::trainer;
  /// "step", "trainer", "read", a stage of the transform's, "copy", "convert", "cores", "prefetch",
  /// "upload" (enqueuing copies), or "hand over" (the work per batch, where samples are cheap).
  std::string stage{};
  /// The share of time (0 to 1) that `text` names.
  double share = 0;
  /// Amdahl's limit: how many times faster the run gets at most with any number of further workers
  /// (on cores of their own); 1 = not at all. What then bounds it is `next_bound`.
  double speedup_limit = 1;
  std::string next_bound{};
  /// A sentence for people with the stage and the number, and one with what to change.
  std::string text{};
  std::string advice{};
};

/// What a pipeline did in a stretch of time.
struct Report {
  /// `PipelineOptions::name`.
  std::string pipeline{};
  /// `Transform::description`: of an image transform its recipe, and with it the Pillow that pixels
  /// are like.
  std::string transform{};
  double seconds = 0;
  /// What `next` handed out.
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  /// What workers made, handed out or not.
  std::uint64_t samples_made = 0;
  /// The bytes of the records that were read for them.
  std::uint64_t encoded_bytes = 0;
  /// How many of these were made by each way that the transform told of (`Sample::made_by`): image
  /// transforms tell who decoded the image (`ImageHeader::decoder`).
  std::map<std::string, std::uint64_t> ways{};
  /// Seconds that workers spent in the transform's stages for these samples, by the same names.
  std::map<std::string, double> way_seconds{};
  std::uint64_t copied_bytes = 0;

  /// How long each call of `next`, and each wait for a further micro-batch, waited for data that
  /// was not made yet.
  Durations stall;
  /// Of `stall`, what was waited for the run's first batch; 0 if the report began later.
  double start_stall_ms = 0;
  /// How long each call of `next` waited for a slot, since the work that the trainer has queued
  /// used them all.
  Durations ahead;
  /// The time from the pipeline's start to the first batch handed out; 0 while there is none.
  double first_batch_seconds = 0;

  /// In the order of the road: "read", the transform's own, "copy" (on a device that copies),
  /// "convert" (if batches are converted or come in several micro-batches, which are then put
  /// together on the device), "trainer".
  std::vector<StageReport> stages;
  /// The workers of the nodes that it runs on.
  unsigned workers = 0;
  /// How many of them took part, a mean over time: fewer if `RuntimeOptions::adaptive` lets the
  /// need decide.
  double active_workers = 0;
  /// How many processors this process (of several ranks on a host, this rank) may use on these
  /// nodes, and how many of its processors are left free for threads that launch kernels.
  unsigned cores = 0;
  unsigned launch_cores = 0;
  /// Time spent on this pipeline's samples / (active workers x seconds).
  double worker_utilization = 0;
  /// The share of the active workers' time, 0 to 1, in which they could run but the operating
  /// system gave the processor to others; nullopt if it does not tell (Linux: /proc/.../schedstat).
  std::optional<double> worker_delay;
  /// How many made batches wait for the trainer, and how many host slots are free: means over time.
  double ready_batches = 0;
  double free_slots = 0;
  /// Whether workers are bound to the processors of their NUMA node.
  bool workers_bound = false;
  /// The nodes that it runs on.
  std::vector<NodeReport> nodes;
  /// What is not as it should be, a sentence each, for people: `Runtime::warnings`, memory that is
  /// not on its node, a high `worker_delay`, an instruction set that failed its self-check. Empty
  /// when all is well.
  std::vector<std::string> warnings;

  std::uint64_t bad_records = 0;
  /// The first 100 of them.
  std::vector<BadRecord> bad_record_list;

  MemoryReport memory;
  CacheReport cache;

  /// A verdict from what the pipeline sees by itself; `judge` with the device's idle time is surer.
  Verdict verdict;
};

/// The report as a JSON object, for programs: each member under its name here, and those of
/// durations, stages, nodes, bad records, memory and the verdict in objects of their own. What is
/// nullopt is null.
std::string to_json(const Report& report);

/// Judges a run. `device_idle` is the share of time (0 to 1) in which the device's compute stream
/// had nothing to run; nullopt if that is not known, as a pipeline itself does not see it.
Verdict judge(const Report& report, std::optional<double> device_idle = std::nullopt);

}  // namespace millrace
