// SPDX-License-Identifier: Apache-2.0
//
// Options of a run (`PipelineOptions`) and of a request for a batch (`NextRequest`).
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
            ///< some ranks get no samples.
  pad,      ///< The batch is filled with the epoch's first samples, which are marked as not valid.
};

/// Policy for records that fail to decode or transform. In every case `report()` lists the key and
/// the reason. With `replace` and `mark` the policy also applies if a record lacks a field that the
/// transform reads, or has it in a wrong size (`Record::integer`). With `fail`, such a record also
/// ends the run. The error then keeps its own code (`not_found`, or `corrupt` for the size) instead
/// of `bad_record`.
enum class BadRecords {
  fail,     ///< The run ends with an `Error` that names the record.
  replace,  ///< Another record replaces it, drawn at random: by the weights in `weighted` and
            ///< `mixed` orders, uniformly in all others; in a one-pass dataset, uniformly from the
            ///< bad record's window. The draw depends only on seed, position and number of the
            ///< attempt. If 16 replacements are bad, too, the run ends.
  mark,     ///< The sample is zeroed and marked as not valid.
};

/// Selects the workers that make a pipeline's samples, and the nodes of its host slots.
enum class Nodes {
  device,  ///< Workers of the device's NUMA node; of all nodes if that node has no workers.
  all,     ///< Workers of all nodes. Each worker fills the slots of its own node. An idle worker
           ///< helps other nodes.
};

/// Numbers of batches that are in progress at once, and the nodes of their slots.
struct SlotOptions {
  /// Number of host slots, at least 1. A host slot holds a batch while its samples are made, while
  /// it waits for its copy, and during the copy.
  std::size_t prefetch = 4;
  /// Number of device slots, at least 1; 2 means double buffering. Used only if batches are copied.
  /// If copied batches are converted or have several micro-batches, the run also allocates two
  /// staging slots of a host slot's size. The transform's device stages add their memory
  /// (`MemoryReport::staging_bytes`).
  std::size_t device_slots = 2;
  /// Number of micro-batches in a batch: at least 1, at most the samples of this rank's largest
  /// batch. Each micro-batch is copied as soon as its samples are made. Ranks with fewer samples in
  /// a batch may also have fewer micro-batches with samples.
  std::size_t micro_batches = 1;
  /// Number of further batches, after the planned ones, that are announced to the dataset
  /// (`Dataset::prefetch`), at most 4096.
  std::size_t read_ahead = 2;
  Nodes nodes = Nodes::device;
  /// Plan an epoch's batches only when `next` is called after the last batch of the previous epoch.
  /// A call of `Pipeline::set_weights` between two epochs then changes the weights of the next
  /// epoch. The trainer waits for the first batch of each epoch, as at the beginning of the run.
  bool epoch_break = false;
};

/// Distribution of a run over the processes of a data-parallel trainer. All ranks make their
/// pipelines with the same options except `this_process`.
struct RankOptions {
  /// Rank of this process and number of ranks (`world`), in the run and on this host. Each global
  /// batch is divided among the ranks in consecutive pieces.
  Ranks this_process{};
  /// Samples per batch over all ranks, at least `this_process.world`. If it is set, `batch_size` is
  /// ignored. The ranks' shares differ by at most one sample. For a given value, the sequence of
  /// global batches is the same for any `this_process.world`. 0 means this_process.world x
  /// batch_size.
  std::size_t global_batch_size = 0;
};

/// The point from which a stopped run continues.
struct ResumeOptions {
  /// A state from `Batch::state_after` or `Pipeline::state`, of a run on any number of ranks. Its
  /// seed, order, global batch, dataset and transform must equal this run's. If one of them
  /// differs, the constructor of `Pipeline` throws an error that names the differences. A member
  /// that is unknown in the state or in this run is not compared, and the report has a warning. If
  /// unset, the run starts at its beginning.
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
  /// that allocate memory of the device, streams or events, or that wait for the device. If a
  /// thread makes such a call while it works on a batch, the run ends with an error that names the
  /// call. Devices report their blocking calls by `note_blocking_call`. Calls on all threads count,
  /// including those in datasets and transforms. Calls by the trainer between its calls to millrace
  /// do not count.
  ///
  /// A batch that is used on more streams than any earlier batch needs a new event. Making this
  /// event also ends the run, so use all streams from the first batch on.
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

/// Options of a run. Those up to `name` concern every trainer. Options that are needed less often
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
  /// the default placement of workers on this rank's share of the host (`ranks.this_process`).
  std::shared_ptr<Runtime> runtime{};
  /// Name of the run in traces, reports and thread names. A process with several runs may call them
  /// "train" and "eval", for example. Thread names contain the first 8 bytes: "train-upload".
  std::string name = "millrace";

  /// Memory in bytes for record hints. A hint is data about a record. With it, samples of that
  /// record are made faster. The transform makes hints in the first epoch and uses them from the
  /// second epoch on. nullopt = up to 1/100 of the memory that the process may use, divided by the
  /// number of ranks on the host. 0 = no hints. The hint of an image transform is a JPEG's seek
  /// index, the positions at which decoding can start: about 2 KB per image. Pipelines of one
  /// runtime over one dataset share their hints. Their memory limit is then the largest
  /// `index_bytes` of these pipelines. Hints that are stored beside the dataset
  /// (`Dataset::stored_hint`) are used in any case. Hints never change samples.
  std::optional<std::size_t> index_bytes{};
  /// Memory in bytes for a cache. From the second epoch on, samples are made from it. 0 = no cache.
  /// The cache never changes samples. The cache holds each record in one of two forms:
  /// - the part of its sample that depends on the record alone (`Transform::cacheable_prefix`).
  ///   Image transforms cache the image after resize and crop, width x height x 3 bytes, if these
  ///   draw no random numbers
  /// - otherwise its recoded form (`Transform::recoded_form`), made when the record is first used.
  ///   Image transforms recode JPEGs, baseline and progressive ones, to their coefficients. These
  ///   take about 1.3 times the JPEG's bytes, and a random crop is decoded from them several times
  ///   faster. Recoding makes the first epoch slower. Other images are not cached
  ///
  /// Hints (`index_bytes`) are used for records that are not in the cache. If a transform has
  /// nothing to cache, the report has a warning.
  ///
  /// Memory is allocated on demand, plus 8 bytes for each record of the dataset. Nothing is
  /// evicted: when the cache is full, other records are decoded as before. Pipelines of one runtime
  /// over one dataset share one limit: the largest `cache_bytes` of these pipelines. They share the
  /// cache if their transforms have the same cacheable prefix or recoded form. Records are still
  /// read when their samples come from the cache.
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
  /// Maximal time to wait for data, or for another thread to release a batch. nullopt = wait for
  /// data without a limit. If live batches hold every slot, a request without a timeout throws
  /// `Error` (`slots_exhausted`) at once. A request with a timeout waits, and throws `SlotsHeld` if
  /// no batch is released in time.
  std::optional<std::chrono::nanoseconds> timeout{};
  /// Return the batch as soon as the copy of its first micro-batch is enqueued. `micro_batches()`
  /// then returns the micro-batches one by one, and waits for each without a timeout.
  bool in_micro_batches = false;
};

/// An `Error` (`timeout`) of a request with a timeout: the time has passed, and live batches still
/// hold every slot. `next` can return a batch only after one of them is released. A request without
/// a timeout throws `slots_exhausted` instead.
class SlotsHeld final : public Error {
 public:
  explicit SlotsHeld(const std::string& message) : Error(ErrorCode::timeout, message) {}
};

}  // namespace millrace
