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
#include <millrace/error.h>
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
  partial,  ///< The batch is shorter than others. If it has fewer samples than there are ranks,
            ///< some ranks' shares are empty.
  pad,      ///< The batch is filled with the epoch's first samples, which are marked as not valid.
};

/// Policy for records that fail to decode or transform. In every case `report()` lists the key and
/// the reason. With `replace` and `mark` the policy also covers a record that lacks a field which
/// the transform reads (`Record::operator[]`). With `fail`, the error for the missing field ends
/// the run unchanged.
enum class BadRecords {
  fail,     ///< The run ends with an `Error` that names the record.
  replace,  ///< Another record replaces it, at most 16 times. Each one is drawn by (seed, position,
            ///< attempt) with the order's probabilities.
  mark,     ///< The sample is zeroed and marked as not valid.
};

/// Selects the workers that make a pipeline's samples, and the nodes of its host slots.
enum class Nodes {
  device,  ///< Workers of the device's NUMA node, if it has one with workers; else of all nodes.
  all,  ///< Workers of all nodes. Each fills the slots of its own node; when it is idle, it helps
        ///< other nodes.
};

/// The numbers of batches that are in flight at once, and their places.
struct SlotOptions {
  /// Number of host slots, at least 1. A host slot holds a batch while it is made, waits or is
  /// copied.
  std::size_t prefetch = 4;
  /// Number of device slots, for a device that copies, at least 1; 2 means double buffering. If
  /// batches are converted or have several micro-batches, two staging slots of the size of a host
  /// slot are added, and memory of the transform's device stages (`MemoryReport::staging_bytes`).
  std::size_t device_slots = 2;
  /// Number of micro-batches in a batch: at least 1, at most the samples of this rank's largest
  /// batch. Each is copied as soon as its samples are made. Ranks with fewer samples in a batch may
  /// also have fewer micro-batches with samples.
  std::size_t micro_batches = 1;
  /// Number of further batches, after the planned ones, that are announced to the dataset
  /// (`Dataset::prefetch`), at most 4096.
  std::size_t read_ahead = 2;
  Nodes nodes = Nodes::device;
  /// Plan an epoch's batches only when `next` is called after the last batch of the epoch before.
  /// `Pipeline::set_weights` then reaches the very next epoch between two epochs. The trainer waits
  /// for the first batch of each epoch, as at the beginning of the run.
  bool epoch_break = false;
};

/// Distribution of a run over the processes of a data-parallel trainer. All ranks make their
/// pipelines with the same options except `mine`.
struct RankOptions {
  /// Identity of this process. Each global batch is divided among the ranks in consecutive pieces.
  Ranks mine{};
  /// Samples per batch over all ranks, at least `mine.world`. If it is set, `batch_size` is
  /// ignored. The ranks' shares differ by at most one sample. The same number gives the same
  /// sequence of global batches for any `mine.world`. 0 means mine.world x batch_size.
  std::size_t global_batch_size = 0;
};

/// The point from which a stopped run continues.
struct ResumeOptions {
  /// A state from `Batch::state_after` or `Pipeline::state`, on any number of ranks. Its seed,
  /// order, global batch, dataset and transform must equal this run's. Only those that both name
  /// are compared. If one of them differs, the constructor throws and names the differences. The
  /// report warns of parts that were not compared. If unset, the run starts at its beginning.
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
  /// Devices report their blocking calls by `note_blocking_call`. Calls on all threads count, also
  /// in datasets and transforms. The trainer's own work between its calls to millrace does not.
  ///
  /// A batch used on more streams than any earlier batch needs a new event. Making it also ends the
  /// run. So use all streams from the beginning.
  bool forbid_blocking_calls = false;
  /// Detect bytes that the transform does not write. Each sample's memory is filled with random
  /// bytes before the sample is made. The run ends if at least 8 adjacent bytes of a sample are
  /// unwritten. It also ends if the same byte is unwritten in 8 consecutive samples of one worker.
  /// The `Error` (`transform`) names the field and the bytes. Samples that the transform writes
  /// completely are not changed by this option. It costs about two passes over each sample's bytes.
  bool poison_slots = false;
  /// Time that `stop()` and the destructor wait for running calls.
  std::chrono::milliseconds stop_timeout{1000};
  /// Called by the destructor with the name of the stuck stage if `stop_timeout` expires. millrace
  /// never prints; without this function the timeout is silent.
  std::function<void(std::string_view)> on_stuck{};
};

/// Options of a run. The first eight concern every trainer. Options that are needed less often
/// follow; some are in groups: `{.batch_size = 256, .seed = 7, .slots = {.prefetch = 8}}`.
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
  /// Name of the run in traces, reports and thread names. A process with several runs may call them
  /// "train" and "eval", for example. Thread names contain the first 8 bytes: "train-upload".
  std::string name = "millrace";

  /// Memory in bytes for record hints: data that the transform stores about records in the first
  /// epoch, to be faster from the second epoch on. nullopt = up to 1/100 of the memory that the
  /// process may use; with several ranks on a host, of this rank's share. 0 = no hints. Image
  /// transforms store the points in a JPEG at which decoding can start, about 2 KB per image.
  /// Pipelines of one runtime over one dataset share their hints; the limit is the largest value
  /// among them. Hints that are stored beside the dataset (`Dataset::stored_hint`) are used in any
  /// case. Hints never change samples.
  std::optional<std::size_t> index_bytes{};
  /// Memory in bytes for a cache, from which samples are made from the second epoch on. 0 = no
  /// cache. The cache never changes samples. A record is in one form in the cache:
  /// - the part of its sample that depends on the record alone (`Transform::cacheable_prefix`).
  ///   Image transforms cache the image after resize and crop, width x height x 3 bytes, if these
  ///   draw no random numbers
  /// - otherwise its recoded form (`Transform::recoded_form`), made when the record is first used.
  ///   Image transforms recode JPEGs, baseline and progressive ones, to their coefficients: about
  ///   1.3 times the JPEG's bytes, from which a random crop is decoded several times faster. That
  ///   makes the first epoch slower. Other images stay as they are
  ///
  /// Records that are not in the cache have hints (`index_bytes`). If a transform has nothing to
  /// cache, the report has a warning.
  ///
  /// Memory is allocated on demand, with 8 more bytes for each record of the dataset. Nothing is
  /// evicted: when the cache is full, other records are decoded as before. Pipelines of one runtime
  /// over one dataset share the limit, which is the largest value among them. They share the cache
  /// if their transforms have the same cacheable part or recoded form. Records are always read.
  std::size_t cache_bytes = 0;

  /// Transform of a whole batch. It runs after the batch's samples are made and before the batch is
  /// copied. It requires `slots.micro_batches` = 1. Null = the batch transform that the transform
  /// supplies (`Transform::batch_transform`).
  std::shared_ptr<const BatchTransform> batch_transform{};

  SlotOptions slots{};
  RankOptions ranks{};
  ResumeOptions resume{};
  DebugOptions debug{};
};

/// Request for the next batch (`Pipeline::next`).
struct NextRequest {
  /// Stream that uses the batch; null = the host. The stream must outlive the batch, unless the
  /// batch keeps it alive (see `Batch::record_stream`).
  Stream* stream = nullptr;
  /// Maximal time to wait for data, or for another thread to release a batch. nullopt = waits for
  /// data without a limit, but does not wait for slots that live batches hold.
  std::optional<std::chrono::nanoseconds> timeout{};
  /// Return the batch as soon as the copy of its first micro-batch is enqueued. `micro_batches()`
  /// then returns the micro-batches one by one, and waits for each without a timeout.
  bool in_micro_batches = false;
};

/// An `Error` (`timeout`): a request's timeout has passed, and live batches hold every slot. No
/// batch can come before one of them is released.
class SlotsHeld final : public Error {
 public:
  explicit SlotsHeld(const std::string& message) : Error(ErrorCode::timeout, message) {}
};

}  // namespace millrace
