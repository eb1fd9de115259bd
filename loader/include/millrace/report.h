// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

// Threads: functions may be called from any thread at once. Lifetimes: all types are plain data
// without references.

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

/// Statistics of one pipeline stage over the reported time. The stages that workers run ("read",
/// then the transform's) share the workers' waiting time, because a worker runs them in turn.
struct StageReport {
  std::string name{};
  /// Number of threads or streams that run it: the active workers (a mean), 1 for "copy", "convert"
  /// and "trainer".
  double lanes = 0;
  double busy_seconds = 0;
  /// Time without input, summed over all lanes: no planned batch (workers), no micro-batch made
  /// ("copy") or copied ("convert"), no batch made ("trainer": its stalls).
  double waiting_input_seconds = 0;
  /// Time without room for output, summed over all lanes: no free host slot (workers), no free slot
  /// on the device ("copy", "convert"), the trainer itself ahead of the device ("trainer").
  double waiting_output_seconds = 0;
  /// Busy / (lanes x seconds), 0 to 1.
  double occupancy = 0;
  /// Its share of the time that workers spent on samples, 0 to 1; 0 for "copy", "convert" and
  /// "trainer".
  double share = 0;
  /// Distribution of its durations: per sample (workers), per micro-batch ("copy", "convert"),
  /// between two calls of `next` ("trainer").
  Durations each{};
};

struct BadRecord {
  std::uint64_t index = 0;
  std::string key;
  std::string reason;
};

/// Memory of a run. The bytes of all slots depend on the options and are allocated before the run
/// begins. Caches of records and the workers' scratch memory are added to them.
struct MemoryReport {
  std::size_t pinned_bytes = 0;
  /// Device slots and staging slots.
  std::size_t device_bytes = 0;
  /// Part of `device_bytes` that is in the two staging slots; 0 unless batches are converted or
  /// have several micro-batches.
  std::size_t staging_bytes = 0;
  /// Current size of the record hints (`PipelineOptions::index_bytes`) of all pipelines that share
  /// them. In addition to the slots; it grows in the first epoch.
  std::size_t index_bytes = 0;
  /// Current size of the sample cache (`PipelineOptions::cache_bytes`) of all pipelines that share
  /// it. In addition to the slots.
  std::size_t cache_bytes = 0;
  /// Host memory of ended pipelines that the runtime currently keeps for later ones
  /// (`RuntimeOptions::kept_host_bytes`), over all devices. In addition to the slots.
  std::size_t kept_host_bytes = 0;
};

/// Hits and misses of the sample cache (`PipelineOptions::cache_bytes`); both are 0 without one.
struct CacheReport {
  /// Samples made from the cache.
  std::uint64_t hits = 0;
  /// Samples made from their records, because the cache did not have them.
  std::uint64_t misses = 0;
};

/// Statistics of the workers and slots of one NUMA node in a run.
struct NodeReport {
  /// Operating system's number.
  int node = 0;
  unsigned workers = 0;
  /// Whether they are bound to the node's processors.
  bool workers_bound = false;
  /// Number of its host slots. Its workers fill them; idle workers of other nodes help.
  std::size_t slots = 0;
  /// Samples made in its slots: in total, and by workers of other nodes.
  std::uint64_t samples = 0;
  std::uint64_t samples_by_helpers = 0;
  /// Whether all memory of its slots lies on it; nullopt if the system does not tell or if it has
  /// no slots.
  std::optional<bool> memory_on_node{};
};

/// The bottleneck of a run.
enum class Bound {
  step,       ///< the device's step: the loader is fast enough
  trainer,    ///< work of the trainer's thread between steps
  storage,    ///< reading records
  transform,  ///< a stage of the transform: decode, augment
  copy,       ///< copies to the device
  convert,    ///< conversions on the device
  cores,      ///< workers wait for processors
  prefetch,   ///< too few batches ahead: the trainer waits, and no stage is busy all the time
};

/// The stage that bounds a run, the number that shows it, and advice.
struct Verdict {
  Bound bound = Bound::trainer;
  /// "step", "trainer", "read", a stage of the transform, "copy", "convert", "cores", "prefetch",
  /// "upload" (enqueuing copies), or "hand over" (the work per batch, if samples are cheap).
  std::string stage{};
  /// The share of time (0 to 1) that `text` mentions.
  double share = 0;
  /// Amdahl's limit: the maximal speedup of the run by further workers (on cores of their own); 1 =
  /// none. `next_bound` is the bottleneck at that limit.
  double speedup_limit = 1;
  std::string next_bound{};
  /// For people: a sentence with the stage and the number, and a sentence with advice.
  std::string text{};
  std::string advice{};
};

/// Statistics of a pipeline over a period of time.
struct Report {
  /// `PipelineOptions::name`.
  std::string pipeline{};
  /// `Transform::description`: for an image transform its recipe, including the version of Pillow
  /// whose pixels it reproduces.
  std::string transform{};
  double seconds = 0;
  /// Batches and samples that `next` handed out.
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  /// Samples that workers made, including those not handed out yet.
  std::uint64_t samples_made = 0;
  /// Bytes of the records that were read for them.
  std::uint64_t encoded_bytes = 0;
  /// Number of these samples for each name that the transform passed to `Sample::set_decoder_name`.
  /// Image transforms pass the name of the decoder (`ImageHeader::decoder`).
  std::map<std::string, std::uint64_t> decoders{};
  /// Seconds that workers spent in the transform's stages for these samples, by the same names.
  std::map<std::string, double> decoder_seconds{};
  std::uint64_t copied_bytes = 0;

  /// Distribution of the time that `next` waited for data that was not made yet. Each wait for a
  /// further micro-batch counts too.
  Durations stall;
  /// Part of `stall` that was spent waiting for the run's first batch; 0 if the report began later.
  double start_stall_ms = 0;
  /// Distribution of the time that `next` waited for a slot, because the trainer's queued work used
  /// all of them.
  Durations ahead;
  /// Time from the pipeline's start until the first batch was handed out; 0 before that.
  double first_batch_seconds = 0;

  /// Stages in the order of a batch's path: "read", the transform's own, "copy" (on a device that
  /// copies), "convert", "trainer". "convert" exists if batches are converted, or if they have
  /// several micro-batches, which are then joined on the device.
  std::vector<StageReport> stages;
  /// Number of workers on the nodes that the run uses.
  unsigned workers = 0;
  /// Mean number of active workers. It is lower than `workers` if `RuntimeOptions::adaptive` adapts
  /// it to the need.
  double active_workers = 0;
  /// Number of processors that this process (with several ranks on a host: this rank) may use on
  /// these nodes, and number of its processors that are left free for threads that launch kernels.
  unsigned cores = 0;
  unsigned launch_cores = 0;
  /// Time spent on this pipeline's samples / (active workers x seconds).
  double worker_utilization = 0;
  /// Share of the active workers' time, 0 to 1, in which they were ready to run but the operating
  /// system gave the processor to other threads; nullopt if it does not tell (Linux:
  /// /proc/.../schedstat).
  std::optional<double> worker_delay;
  /// Number of batches that are ready for the trainer, and number of free host slots: means over
  /// time.
  double ready_batches = 0;
  double free_slots = 0;
  /// Whether workers are bound to the processors of their NUMA node.
  bool workers_bound = false;
  /// The nodes that the run uses.
  std::vector<NodeReport> nodes;
  /// Warnings for people, one sentence each: `Runtime::warnings`, memory that is not on its node, a
  /// high `worker_delay`, an instruction set that failed its self-check. Often empty.
  std::vector<std::string> warnings;

  std::uint64_t bad_records = 0;
  /// The first 100 of them.
  std::vector<BadRecord> bad_record_list;

  MemoryReport memory;
  CacheReport cache;

  /// A verdict from the pipeline's own measurements. `judge` with the device's idle time is more
  /// reliable.
  Verdict verdict;
};

/// Returns the report as a JSON object, for programs. Each member has its own name; durations,
/// stages, nodes, bad records, memory and the verdict are nested objects. nullopt is null.
std::string to_json(const Report& report);

/// Finds the bottleneck of a run. `device_idle` is the share of time (0 to 1) in which the device's
/// compute stream had no work; nullopt if unknown, because a pipeline itself cannot measure it.
Verdict judge(const Report& report, std::optional<double> device_idle = std::nullopt);

}  // namespace millrace
