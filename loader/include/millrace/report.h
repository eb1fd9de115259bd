// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

// Threads: functions may be called by several threads at the same time. Lifetimes: all types are
// plain data without references.

namespace MILLRACE_API millrace {

/// A distribution of durations, in milliseconds. The error of a percentile is at most 1%.
struct Durations {
  std::uint64_t count = 0;
  double total_ms = 0;
  double p50_ms = 0;
  double p95_ms = 0;
  double p99_ms = 0;
  double max_ms = 0;
};

/// Statistics of one pipeline stage over the reported time. A worker runs "read" and the
/// transform's stages one after another. Each of these stages reports the same waiting time: the
/// total of all workers.
struct StageReport {
  std::string name{};
  /// Number of threads or streams that run the stage. This is the mean number of active workers, or
  /// 1 for "stream", "trainer" and stages of the device. "stream" reads a one-pass dataset.
  double lanes = 0;
  double busy_seconds = 0;
  /// Time without input, summed over all lanes. Workers wait for a planned batch. "copy" waits
  /// until a micro-batch is made, "convert" until one is copied. "trainer" waits until a batch is
  /// made: its stalls.
  double waiting_input_seconds = 0;
  /// Time without room for output, summed over all lanes. Workers wait for a free host slot. "copy"
  /// and "convert" wait for a free slot on the device. If the report has a "move" stage, "move"
  /// waits instead of "convert". "stream" waits for memory for a window. "trainer" waits because it
  /// is ahead of the device.
  double waiting_output_seconds = 0;
  /// Busy / (lanes x seconds), 0 to 1.
  double occupancy = 0;
  /// Busy time of this stage divided by the busy time of all workers' stages, 0 to 1. It is 0 for
  /// "stream", "trainer" and stages of the device.
  double share = 0;
  /// Distribution of the stage's durations: one per sample for stages of workers, one per batch for
  /// a batch transform, one per micro-batch for stages of the device. For "trainer", a duration is
  /// the time between two calls of `next`. It is empty for "stream".
  Durations each{};
  /// Whether a stream of the device runs the stage: "copy", device stages, "convert".
  bool on_device = false;
};

struct BadRecord {
  std::uint64_t index = 0;
  std::string key;
  std::string reason;
};

/// Memory of a run. The bytes of all slots depend on the options and are allocated before the run
/// begins. The limits of the workers' scratch, the record hints and the cache are known then, too.
struct MemoryReport {
  std::size_t pinned_bytes = 0;
  /// Device slots and staging slots.
  std::size_t device_bytes = 0;
  /// Part of `device_bytes`: the two staging slots, and the results and scratch of device stages
  /// (`FieldSpec::device_stages`). 0 unless batches are converted or have several micro-batches.
  std::size_t staging_bytes = 0;
  /// Current size of the record hints (`PipelineOptions::index_bytes`) of all pipelines that share
  /// them. This memory is not part of the slots. It grows in the first epoch.
  std::size_t index_bytes = 0;
  /// Current size of the cache (`PipelineOptions::cache_bytes`) of all pipelines that share it. The
  /// cache holds parts of samples or recoded records. This memory is not part of the slots.
  std::size_t cache_bytes = 0;
  /// Host memory of ended pipelines that the runtime currently keeps for later ones
  /// (`RuntimeOptions::kept_host_bytes`), over all devices. This memory is not part of the slots.
  std::size_t kept_host_bytes = 0;
  /// Limit of the workers' scratch (`Transform::scratch_limit`); 0 = unknown. With a one-pass
  /// dataset it includes `OnePassOptions::memory_bytes`.
  std::size_t scratch_limit_bytes = 0;
  /// Limits of `index_bytes` and `cache_bytes`.
  std::size_t index_limit_bytes = 0;
  std::size_t cache_limit_bytes = 0;

  /// Upper limit of the run's host memory in bytes: the pinned slots plus all limits. It does not
  /// include the device's memory, the program's own memory, the pages of mapped files, or the
  /// buffers of readers (`DatasetReader::held_bytes`). A worker holds up to two records that are
  /// read without a map.
  std::size_t limit_bytes() const {
    return pinned_bytes + scratch_limit_bytes + index_limit_bytes + cache_limit_bytes;
  }
};

/// Samples of one kind, and the time that workers spent on them.
struct SampleTime {
  std::uint64_t samples = 0;
  /// Time in the transform's stages, summed over all workers.
  double seconds = 0;
};

/// Samples by their source: the cache (`PipelineOptions::cache_bytes`) or their records.
struct CacheReport {
  /// Samples made from the cache; 0 without a cache.
  std::uint64_t hits = 0;
  /// Samples made from their records, because the cache did not have them; 0 without a cache.
  std::uint64_t misses = 0;
  /// Time in the transform's stages for the hits, summed over all workers.
  double hit_seconds = 0;
  /// Misses whose records were recoded for the cache. The time includes the recoding.
  SampleTime recoded{};
  /// Samples made from their records without recoding: `hinted` with a record hint
  /// (`PipelineOptions::index_bytes`), `plain` without a hint. With a cache these samples are
  /// misses, too.
  SampleTime hinted{};
  SampleTime plain{};
};

/// Statistics of the workers and slots of one NUMA node in a run.
struct NodeReport {
  /// Number of the node in the operating system.
  int node = 0;
  unsigned workers = 0;
  /// Whether these workers are bound to the node's processors.
  bool workers_bound = false;
  /// Number of the node's host slots. The node's workers fill them; idle workers of other nodes
  /// help.
  std::size_t slots = 0;
  /// Number of samples made in the node's slots.
  std::uint64_t samples = 0;
  /// Number of these samples that workers of other nodes made.
  std::uint64_t samples_by_helpers = 0;
  /// Whether all memory of the node's slots is on this node; nullopt if unknown or without slots.
  std::optional<bool> memory_on_node{};
};

/// The bottleneck of a run.
enum class Bound {
  step,       ///< the device's step: the loader is fast enough
  trainer,    ///< work of the trainer's thread between steps
  storage,    ///< reading records, or a stream of them
  transform,  ///< a stage of the transform: decode, augment
  copy,       ///< copies to the device
  convert,    ///< conversions on the device
  cores,      ///< workers wait for processors
  prefetch,   ///< too few batches ahead: the trainer waits, and no stage is busy all the time
};

/// The stage that bounds a run, the number that shows it, and advice.
struct Verdict {
  Bound bound = Bound::trainer;
  /// "step", "trainer", "read", a stage of the transform, "stream", "copy", a stage of the device,
  /// "convert", "cores", "prefetch", "upload" or "hand over". "upload" is the work of enqueuing
  /// copies. "hand over" is the fixed work for each batch: planning, waking threads, counting. It
  /// bounds the run if the workers make a batch in less time than that.
  std::string stage{};
  /// The share of time (0 to 1) that `text` mentions.
  double share = 0;
  /// Largest speedup that more workers with their own cores can give (Amdahl's law); 1 = no
  /// speedup.
  double speedup_limit = 1;
  /// The bottleneck at that limit.
  std::string next_bound{};
  /// A sentence for people that contains the stage and the number.
  std::string text{};
  /// Advice for people, in a sentence.
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
  /// Bytes of the records that were read for `samples_made`.
  std::uint64_t encoded_bytes = 0;
  /// Number of the made samples per decoder. The key is the name that the transform passed to
  /// `Sample::set_decoder_name`. Image transforms pass `ImageHeader::decoder`.
  std::map<std::string, std::uint64_t> decoders{};
  /// Seconds that workers spent in the transform's stages per decoder, with the same keys.
  std::map<std::string, double> decoder_seconds{};
  std::uint64_t copied_bytes = 0;

  /// Distribution of the time that `next` waited for data that was not made yet. Each wait for a
  /// further micro-batch counts too.
  Durations stall;
  /// Part of `stall` that was spent waiting for the run's first batch. It is 0 if the report began
  /// after that batch.
  double start_stall_ms = 0;
  /// Distribution of the time that `next` waited for a slot, because the trainer's queued work used
  /// all of them.
  Durations ahead;
  /// Time from the pipeline's start until the first batch was handed out; 0 before that.
  double first_batch_seconds = 0;

  /// Stages in the order of a batch's path: "read", the transform's own, the batch transform's,
  /// "copy", the first device stage (`DeviceStage::name`), "convert", "trainer". "copy" exists if
  /// batches are copied. "convert" exists if batches are converted, or if they have several
  /// micro-batches, which are joined on the device. It includes all work of the device between the
  /// first device stage and the conversion. With a trace (`DebugOptions::trace`), this work has
  /// separate stages, if there is any: "move" (copying the other fields), further device stages,
  /// then "erase", "mix" or "erase+mix". Each separate stage needs one more event of the device.
  std::vector<StageReport> stages;
  /// Number of workers on the nodes that the run uses.
  unsigned workers = 0;
  /// Mean number of active workers. It is lower than `workers` if `RuntimeOptions::adaptive` pauses
  /// some of them.
  double active_workers = 0;
  /// Number of processors on these nodes that this process may use; with several ranks on a host,
  /// the processors of this rank.
  unsigned cores = 0;
  /// Number of processors that are left free for threads that launch kernels.
  unsigned launch_cores = 0;
  /// Time spent on this pipeline's samples / (active workers x seconds).
  double worker_utilization = 0;
  /// Share of the active workers' time, 0 to 1, in which they were ready to run but other threads
  /// had the processor. nullopt if the operating system does not report it (Linux:
  /// /proc/.../schedstat).
  std::optional<double> worker_delay;
  /// Number of batches that are ready for the trainer, as a mean over time.
  double ready_batches = 0;
  /// Number of free host slots, as a mean over time.
  double free_slots = 0;
  /// Whether workers are bound to the processors of their NUMA node.
  bool workers_bound = false;
  /// The nodes that the run uses.
  std::vector<NodeReport> nodes;
  /// Warnings for people, one sentence each: `Runtime::warnings`, memory that is not on its node, a
  /// high `worker_delay`, an instruction set that failed its self-check. Often empty.
  std::vector<std::string> warnings;

  std::uint64_t bad_records = 0;
  /// The first 100 bad records.
  std::vector<BadRecord> bad_record_list;

  MemoryReport memory;
  CacheReport cache;

  /// A verdict from the pipeline's own measurements. `judge` with the device's idle time is more
  /// reliable.
  Verdict verdict;
};

/// Returns the first stage that the device runs between copy and conversion, except "move"; null if
/// it runs none there.
const StageReport* device_stage(const Report& report);

/// Returns the report as a JSON object, for programs. Keys are the names of the members, with two
/// exceptions: `decoders` is "ways", and `decoder_seconds` is "way_seconds". Structs become nested
/// objects, vectors become lists, and nullopt becomes null.
std::string to_json(const Report& report);

/// Finds the bottleneck of a run. `device_idle` is the share of time (0 to 1) in which the device's
/// compute stream had no work. nullopt means unknown: a pipeline itself cannot measure it.
Verdict judge(const Report& report, std::optional<double> device_idle = std::nullopt);

}  // namespace millrace
