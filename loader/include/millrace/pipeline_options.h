// SPDX-License-Identifier: Apache-2.0
//
// The options of a run, and those of a request for a batch.
//
// Threads and lifetimes: options are values. They share ownership of the runtime, the batch
// transform and the trace.
#pragma once

#include <millrace/batch_transform.h>
#include <millrace/conversion.h>
#include <millrace/detail/export.h>
#include <millrace/order.h>
#include <millrace/ranks.h>
#include <millrace/runtime.h>
#include <millrace/state.h>
#include <millrace/trace.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace MILLRACE_API millrace {

class Stream;

/// Policy for the last batch of an epoch if the records do not fill it.
enum class LastBatch {
  drop,     ///< The batch is left out.
  partial,  ///< The batch is shorter than others; a rank's share is empty if ranks outnumber
            ///< samples.
  pad,      ///< The batch is filled with the epoch's first samples, which are marked as not valid.
};

/// Policy for records that fail to decode or transform. In every case `report()` lists the key and
/// the reason. With `replace` and `mark` the policy also covers a record that lacks a field which
/// the transform reads (`Record::operator[]`). With `fail` that error ends the run unchanged.
enum class BadRecords {
  fail,     ///< The run ends with an `Error` that names the record.
  replace,  ///< Another record replaces it, drawn by (seed, position, attempt) with the order's
            ///< probabilities, at most 16 times.
  mark,     ///< The sample is zeroed and marked as not valid.
};

/// Selects the workers that make a pipeline's samples, and the nodes of its host slots.
enum class Nodes {
  device,  ///< Workers of the device's NUMA node, if it has one with workers; else of all nodes.
  all,  ///< Workers of all nodes: each fills the slots of its own node, and helps others when it is
        ///< idle.
};

/// Number of batches in flight at a time, and where.
struct SlotOptions {
  /// Number of host slots, at least 1. A host slot holds a batch while it is made, waits or is
  /// copied.
  std::size_t prefetch = 4;
  /// Number of device slots, for a device that copies, at least 1; 2 means double buffering. If
  /// batches are converted or have several micro-batches, two staging slots of the size of a host
  /// slot are added (`MemoryReport::staging_bytes`).
  std::size_t device_slots = 2;
  /// Number of micro-batches in a batch: at least 1, at most the samples of this rank's largest
  /// batch. Each is copied as soon as its samples are made. If ranks have different numbers of
  /// samples in a batch, they may also have different numbers of micro-batches with samples.
  std::size_t micro_batches = 1;
  /// Number of batches beyond the planned ones that are announced to the dataset
  /// (`Dataset::prefetch`), at most 4096.
  std::size_t read_ahead = 2;
  Nodes nodes = Nodes::device;
};

/// Distribution of a run over the processes of a data-parallel trainer. All ranks make their
/// pipelines with the same options except `mine`.
struct RankOptions {
  /// Identity of this process. Each global batch is divided among the ranks in consecutive pieces.
  Ranks mine{};
  /// Samples per batch over all ranks, at least `mine.world`; `batch_size` is then ignored. The
  /// ranks' shares differ by at most one sample. The same number gives the same sequence of global
  /// batches for any `mine.world`. 0 means mine.world x batch_size.
  std::size_t global_batch_size = 0;
};

/// The point from which a stopped run continues.
struct ResumeOptions {
  /// A state from `Batch::state_after` or `Pipeline::state`, on any number of ranks. Seed, order,
  /// global batch, dataset and transform must be those of this run, as far as both name them. Else
  /// the constructor throws and names the differences. The report warns of parts that were not
  /// compared. If unset, the run starts at its beginning.
  std::optional<State> from{};
  /// Use only the position of `from`, and do not compare the rest.
  bool anyway = false;
};

/// Debugging aids, and the handling of a run that hangs.
struct DebugOptions {
  /// Receives every span of the run. If unset, nothing is traced.
  std::shared_ptr<Trace> trace{};
  /// Forbid blocking device calls after the warm-up, which ends when every slot has been used
  /// (`slots.prefetch` + `slots.device_slots` batches were handed out). Blocking calls are those
  /// that allocate memory of the device, streams or events, or that wait for the device. If such a
  /// call is made for a batch in the pipeline, the run ends with an error that names the call.
  /// Devices report their blocking calls by `note_blocking_call`. All threads count, including
  /// those in datasets and transforms, but not the trainer's own work between its calls. A batch
  /// that is used on more streams than any batch before needs another event, which also ends the
  /// run. So use all streams from the beginning.
  bool forbid_blocking_calls = false;
  /// Detect bytes that the transform does not write. Each sample's memory is filled with random
  /// bytes before the sample is made. The run ends with an `Error` (`transform`) that names the
  /// field and the bytes in two cases: at least 8 adjacent bytes are unwritten in a sample, or the
  /// same byte in 8 consecutive samples of one worker. Samples that the transform writes completely
  /// are not changed by this option. It costs about two passes over each sample's bytes.
  bool poison_slots = false;
  /// Time that `stop()` and the destructor wait for running calls.
  std::chrono::milliseconds stop_timeout{1000};
  /// Called by the destructor with the name of the stuck stage if `stop_timeout` expires. millrace
  /// never prints; without this function the timeout is silent.
  std::function<void(std::string_view)> on_stuck{};
};

/// Options of a run. The first eight concern every trainer. Less frequent ones are grouped after
/// them: `{.batch_size = 256, .seed = 7, .slots = {.prefetch = 8}}`.
struct PipelineOptions {
  /// Samples per batch on this rank.
  std::size_t batch_size = 64;
  std::uint64_t seed = 0;
  /// Sequence of the records, and the definition of an epoch.
  Order order{};
  /// The run ends after this many epochs; 0 means never.
  std::uint64_t epochs = 0;
  LastBatch last_batch = LastBatch::partial;
  BadRecords bad_records = BadRecords::fail;
  /// Conversion of the images on the device. If unset, images stay as the transform made them. If
  /// set, a device that otherwise does not copy (`HostDevice`) copies batches to separate memory.
  std::optional<Conversion> conversion{};
  /// Runtime whose workers make the samples. If null, the pipeline makes a runtime of its own, with
  /// the default placement of workers on this rank's share of the host (`ranks.mine`).
  std::shared_ptr<Runtime> runtime{};
  /// Name of the run in traces, reports and thread names, such as "train" and "eval" if a process
  /// has several. Thread names contain its first 8 bytes: "train-upload".
  std::string name = "millrace";

  /// Memory in bytes for record hints: data that the transform stores about records in the first
  /// epoch to be faster from the second one on. nullopt = up to a hundredth of the memory that the
  /// process may use (with several ranks on a host: of its share). 0 = no hints. Image transforms
  /// store the points in a JPEG at which decoding can start, about 2 KB per image. Pipelines of one
  /// runtime over one dataset share their hints; the limit is the largest value among them. Hints
  /// that are stored beside the dataset (`Dataset::stored_hint`) are used in any case. Hints never
  /// change samples.
  std::optional<std::size_t> index_bytes{};
  /// Memory in bytes for a cache of the part of samples that depends on the record alone. From the
  /// second epoch on this part is taken from the cache instead of being decoded again. 0 = no
  /// cache. Image transforms cache the image after resize and crop, width x height x 3 bytes, if
  /// these draw no random numbers (`Transform::cacheable_prefix`). Otherwise the report has a
  /// warning.
  ///
  /// Memory is allocated on demand, with 8 more bytes for each record of the dataset. When the
  /// cache is full, other records are decoded as before. Pipelines of one runtime over one dataset
  /// share the cache if their transforms have the same cacheable part; the limit is the largest
  /// value among them. Each other part has a cache of its own. Records are read in any case. The
  /// cache never changes samples.
  std::size_t cache_bytes = 0;

  /// Transform of a whole batch, applied after its samples are made and before it is copied. Null =
  /// the one that the transform supplies (`Transform::batch_transform`). It requires
  /// `slots.micro_batches` = 1.
  std::shared_ptr<const BatchTransform> batch_transform{};

  SlotOptions slots{};
  RankOptions ranks{};
  ResumeOptions resume{};
  DebugOptions debug{};
};

/// Request for the next batch (`Pipeline::next`).
struct NextRequest {
  /// Stream that uses the batch; null = the host. It must outlive the batch, unless the batch keeps
  /// it.
  Stream* stream = nullptr;
  /// Maximal time to wait for data, or for another thread to release a batch. nullopt = as long as
  /// the data takes, but not for slots that live batches hold.
  std::optional<std::chrono::nanoseconds> timeout{};
  /// Return the batch as soon as the copy of its first micro-batch is enqueued. `micro_batches()`
  /// then returns the micro-batches one by one, and waits for each without a timeout.
  bool in_parts = false;
};

}  // namespace millrace
