// SPDX-License-Identifier: Apache-2.0
// The loader's front door: a trainer describes a run in `PipelineOptions`, makes a `Pipeline` of it
// and takes batches from it.
//
// Threads: every method of a `Pipeline` may be called from any thread, several at a time. Only its
// move and its destruction need it alone.
// Lifetimes: a pipeline shares the ownership of its dataset, transform, device and runtime. A
// `Batch` may outlive the pipeline that made it. A stream that is given to `next` outlives the
// batches that are used on it, unless they keep it (`Batch::record_stream`).
// Fork: a child of fork() has none of the threads. Destructors return at once there and free
// nothing; a pipeline that is used is an error. Fork before the first pipeline, or make new ones.
#pragma once

#include <millrace/batch.h>
#include <millrace/batch_transform.h>
#include <millrace/conversion.h>
#include <millrace/dataset.h>
#include <millrace/detail/export.h>
#include <millrace/device.h>
#include <millrace/error.h>
#include <millrace/order.h>
#include <millrace/ranks.h>
#include <millrace/report.h>
#include <millrace/runtime.h>
#include <millrace/state.h>
#include <millrace/trace.h>
#include <millrace/transform.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

// Private, so outside of what is shown.
namespace millrace {
class Engine;
}  // namespace millrace

namespace MILLRACE_API millrace {

/// What becomes of an epoch's last batch when the records do not fill it.
enum class LastBatch {
  drop,     ///< It is left out.
  partial,  ///< It is shorter than the others; a rank's share is empty if ranks outnumber samples.
  pad,      ///< It is filled up with the epoch's first samples, which are marked as not valid.
};

/// What becomes of a record that cannot be made into a sample. In every case `report()` has its key
/// and the reason. With `replace` and `mark` this is also a record without a field that the
/// transform asks it for (`Record::operator[]`); with `fail` that error ends the run as it is.
enum class BadRecords {
  fail,     ///< The run ends with an `Error` that names the record.
  replace,  ///< Another record takes its place, drawn by (seed, position, attempt) with the order's
            ///< odds, at most 16 times.
  mark,     ///< The sample is zeroed and marked as not valid.
};

/// Whose workers make a pipeline's samples, and where its host slots lie.
enum class Nodes {
  device,  ///< Those of the device's NUMA node, if it has one with workers; else all nodes'.
  all,     ///< Every node's: each worker fills the slots that lie on its node, and helps the others
           ///< when it has nothing to do.
};

/// How many batches are on their way at a time, and where.
struct SlotOptions {
  /// Host slots: batches that are being made, wait or are being copied; at least 1.
  std::size_t prefetch = 4;
  /// Device slots, for a device that copies; at least 1, where 2 means double buffering. If batches
  /// are converted or come in several micro-batches, two staging slots of the size of a host slot
  /// come on top (`MemoryReport::staging_bytes`).
  std::size_t device_slots = 2;
  /// Micro-batches in which a batch is copied, each at once and as soon as its samples are made; at
  /// least 1, at most the samples of this rank's largest batch. Where ranks' shares of a batch
  /// differ, so may the number of micro-batches that have samples.
  std::size_t micro_batches = 1;
  /// How many batches beyond the planned ones the dataset is told of (`Dataset::prefetch`), at most
  /// 4096.
  std::size_t read_ahead = 2;
  Nodes nodes = Nodes::device;
};

/// How a run is shared by the processes of a data-parallel trainer. Every rank makes its pipeline
/// with the same options but for `mine`.
struct RankOptions {
  /// Which process this is. Each global batch is dealt to the ranks in consecutive pieces.
  Ranks mine{};
  /// Samples per batch over all ranks, at least `mine.world`, dealt so that ranks' shares differ by
  /// at most one; `batch_size` is not looked at then. The same number gives the same sequence of
  /// global batches for any `mine.world`. 0 means mine.world x batch_size.
  std::size_t global_batch_size = 0;
};

/// Where a run goes on that was stopped.
struct ResumeOptions {
  /// What `Batch::state_after` or `Pipeline::state` said, on any number of ranks. It must be of
  /// this seed, order, global batch, dataset and transform, as far as both name them; else the
  /// pipeline is refused with what differs. The report warns of what was not compared. Without one
  /// the run begins at its beginning.
  std::optional<State> from{};
  /// Take the position of `from` alone, and do not look at the rest.
  bool anyway = false;
};

/// What helps to find faults, and what happens to a run that hangs.
struct DebugOptions {
  /// Where every span of the run goes. Without one nothing is traced.
  std::shared_ptr<Trace> trace{};
  /// Once every slot has been used (`slots.prefetch` + `slots.device_slots` batches were handed
  /// out), the run ends with an error that names the call when anything on the way of the batches
  /// allocates memory of the device, streams or events, or waits for the device: what devices tell
  /// by `note_blocking_call`, on any thread, datasets and transforms included. What the trainer
  /// does between its calls is its own. A batch that is used on more streams than any before it
  /// needs another event, which also ends the run then: use them all from the beginning.
  bool forbid_blocking_calls = false;
  /// Finds bytes that the transform does not write. Each sample's place is filled with random bytes
  /// before the sample is made. The run ends with an `Error` (`transform`) that names the field and
  /// the bytes when at least 8 adjacent ones are left in a sample, or the same byte in 8 samples of
  /// one worker in a row. Samples that the transform writes whole are the same with it and without.
  /// It costs about two passes over each sample's bytes.
  bool poison_slots = false;
  /// How long `stop()` and the destructor wait for what is running.
  std::chrono::milliseconds stop_timeout{1000};
  /// Told, by the destructor alone, what is stuck when that time is over. millrace never prints;
  /// without this it is silent.
  std::function<void(std::string_view)> on_stuck{};
};

/// A run. The first eight are those that every trainer looks at; what it seldom needs is grouped
/// behind them: `{.batch_size = 256, .seed = 7, .slots = {.prefetch = 8}}`.
struct PipelineOptions {
  /// Samples per batch on this rank.
  std::size_t batch_size = 64;
  std::uint64_t seed = 0;
  /// Which records come when, and what an epoch is.
  Order order{};
  /// The run ends after this many epochs; 0 means never.
  std::uint64_t epochs = 0;
  LastBatch last_batch = LastBatch::partial;
  BadRecords bad_records = BadRecords::fail;
  /// What the device makes of the images. Without one they stay as the transform made them. With
  /// one, batches are copied to memory of their own also on a device that does not copy otherwise
  /// (`HostDevice`).
  std::optional<Conversion> conversion{};
  /// Whose workers make the samples. Without one the pipeline makes a runtime of its own, with
  /// workers as they are placed by default on this rank's share of the host (`ranks.mine`).
  std::shared_ptr<Runtime> runtime{};
  /// What the run is called in traces, reports and the names of its threads, such as "train" and
  /// "eval": "train-feed" (the first 9 bytes), where a process has several.
  std::string name = "millrace";

  /// The memory for what the transform notes of the dataset's records in the first epoch, to be
  /// faster from the second one on, in bytes; nullopt = up to a hundredth of what the process may
  /// use (of several ranks on a host, its part of that), and 0 = nothing is noted. Image transforms
  /// note where in a JPEG one can begin, about 2 KB an image. Pipelines of one runtime over one
  /// dataset share their notes, in as much memory as the largest of them says. Notes that are
  /// stored beside the dataset (`Dataset::stored_note`) are used in any case. Samples depend on no
  /// note.
  std::optional<std::size_t> index_bytes{};
  /// The memory for what of samples follows from their records alone, to be made of that from the
  /// second epoch on instead of being decoded again, in bytes; 0 = nothing is kept. Image
  /// transforms keep the image behind resize and crop, width x height x 3 bytes, if these draw no
  /// random numbers (`Transform::fixed_part`); else the report has a warning. It is taken as it is
  /// needed, with 8 bytes for each of the dataset's records, and what has no room is decoded as
  /// before. Pipelines of one runtime over one dataset share it where that part of their transforms
  /// is the same, in as much memory as the largest of them says; each other part has its own.
  /// Records are read all the same. Samples are the same with it and without.
  std::size_t cache_bytes = 0;

  /// What is done to a batch whose samples are made, before it is put on its way; null = what the
  /// transform brings along (`Transform::batch_transform`). It needs `slots.micro_batches` to be 1.
  std::shared_ptr<const BatchTransform> batch_transform{};

  SlotOptions slots{};
  RankOptions ranks{};
  ResumeOptions resume{};
  DebugOptions debug{};
};

/// How `Pipeline::next` gives the next batch.
struct NextRequest {
  /// What the batch is used on; null = the host. It must outlive the batch, unless that keeps it.
  Stream* stream = nullptr;
  /// How long to wait for data, or for another thread to let go of a batch; nullopt = as long as
  /// the data takes, but not for slots that live batches hold.
  std::optional<std::chrono::nanoseconds> timeout{};
  /// The batch comes as soon as its first micro-batch is on its way, and `Batch::parts()` gives
  /// them one by one, each of which is then waited for without a timeout.
  bool in_parts = false;
};

/// A run over a dataset: batches in order, made ahead by the runtime's workers and on their way to
/// the device before they are asked for. Of two threads in `next` each gets a batch of its own.
class Pipeline {
 public:
  /// Takes memory for all slots and starts working. Throws `Error`: `invalid_argument` that names
  /// the option that is wrong, `device` if the device gives no memory, stream or event, and what
  /// reading throws for `Order::bucketed_by`; without `PipelineOptions::runtime` also what
  /// `Runtime` throws. Throws `std::system_error` if no thread can be started.
  Pipeline(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const Transform> transform,
           std::shared_ptr<Device> device, PipelineOptions options = {});
  /// Stops. Returns within `debug.stop_timeout` even when a dataset, transform or device call
  /// hangs: what it uses is then kept until it returns, and `debug.on_stuck` is told.
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;

  /// The next batch. With a stream, that is made to wait for the data, and this thread does not
  /// wait for the device; without, it returns when the data can be read, which on a device that
  /// copies it waits for. Blocks while the batch is not made. Empty after the last epoch. Throws
  /// the run's first error, on every call from then on, and `Error`, after which the run goes on:
  /// `slots_exhausted` if live batches hold every slot and there is no timeout, `timeout` when that
  /// has passed, `invalid_argument` while the stream is being captured into a graph.
  Batch next(const NextRequest& request);
  /// The short forms: for use on a stream, the same with a timeout, for use on the host, and
  /// micro-batch by micro-batch.
  Batch next(Stream& stream);
  Batch next(Stream& stream, std::chrono::nanoseconds timeout);
  Batch next();
  Batch next_in_parts(Stream& stream);

  /// How many batches an epoch has, the same on every rank.
  std::uint64_t batches_per_epoch() const;
  /// How many batches the run has from its beginning, those before `resume.from` included; nullopt
  /// if it never ends.
  std::optional<std::uint64_t> total_batches() const;
  /// Where a new pipeline would go on: after the last batch handed out.
  State state() const;
  /// What happened since the start or the last `restart_report()`.
  Report report() const;
  /// Starts the report's times and counts afresh, after a warm-up. Bad records and memory stay.
  void restart_report();
  /// These two in one step, for less than they cost together: of one such report and the next,
  /// what happened is in one of them, and in one alone.
  Report take_report();

  /// Ends the run: whoever is in `next` gets an `Error` (`stopped`). Throws `Error` (`timeout`,
  /// with the stage) when something is still running after `debug.stop_timeout`.
  void stop();

 private:
  std::shared_ptr<Engine> engine() const;
  void end() noexcept;

  std::shared_ptr<Engine> engine_;
  std::chrono::milliseconds stop_timeout_{0};
  std::function<void(std::string_view)> on_stuck_;
};

}  // namespace millrace
