// SPDX-License-Identifier: Apache-2.0
// The entry point of the loader. A trainer describes a run in `PipelineOptions`, makes a `Pipeline`
// with these options, and takes batches from the pipeline.
//
// Threads: every method of a `Pipeline` may be called from any thread, several at a time. Moving or
// destroying a pipeline requires that no other thread uses it.
// Lifetimes: a pipeline shares ownership of its dataset, transform, device and runtime. A `Batch`
// may outlive its pipeline. A stream must outlive the batches used on it, unless a batch keeps the
// stream alive (see `Batch::record_stream`).
// Fork: a child of fork() has none of the pipeline's threads. In the child, destructors return at
// once and free nothing. Using the parent's pipeline in the child, or making a pipeline there with
// the parent's runtime, throws an `Error`. Fork before making the first pipeline, or make new
// pipelines and runtimes in the child.
#pragma once

#include <millrace/batch.h>
#include <millrace/dataset.h>
#include <millrace/detail/export.h>
#include <millrace/device.h>
#include <millrace/error.h>
#include <millrace/pipeline_options.h>
#include <millrace/report.h>
#include <millrace/state.h>
#include <millrace/transform.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// Private types, outside the exported namespace.
namespace millrace {
class Engine;
}  // namespace millrace

namespace MILLRACE_API millrace {

/// A run over a dataset. `next` returns the batches in order. The runtime's workers make batches
/// ahead, and the copies to the device begin before `next` requests the batches. If two threads
/// call `next`, each gets a batch of its own.
class Pipeline {
 public:
  /// Allocates memory for all slots and starts the run. Throws an `Error` (`invalid_argument`) that
  /// names the wrong option. Throws `Error` (`device`) if the device cannot provide memory, a
  /// stream or an event. With `Order::bucketed_by`, also throws the errors of `record_lengths`.
  /// Without `PipelineOptions::runtime`, also throws the errors of `Runtime`'s constructor. Throws
  /// `std::system_error` if a thread cannot be started.
  Pipeline(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const Transform> transform,
           std::shared_ptr<Device> device, PipelineOptions options = {});
  /// Stops the run. Returns within `debug.stop_timeout` even if a call to the dataset, transform or
  /// device hangs. In that case it calls `debug.on_stuck`, and the objects that the hanging call
  /// uses stay alive until that call returns.
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;

  /// Returns the next batch, or an empty batch after the last epoch. Blocks until the batch is
  /// made. If the request has a stream, that stream waits for the data, and the calling thread does
  /// not wait for the device. Without a stream, the call returns when the data can be read: if
  /// batches are copied, it also waits for the copy.
  ///
  /// After an error that ends the run, every call throws that error. Three `Error`s do not end the
  /// run:
  /// - `slots_exhausted`: live batches hold every slot, and the request has no timeout.
  /// - `timeout`: the request's timeout has passed. It is a `SlotsHeld` if live batches hold every
  ///   slot.
  /// - `invalid_argument`: the stream is being captured into a graph.
  Batch next(const NextRequest& request);
  /// Short forms of `next`: on a stream, on a stream with a timeout, on the host, and on a stream
  /// in micro-batches.
  Batch next(Stream& stream);
  Batch next(Stream& stream, std::chrono::nanoseconds timeout);
  Batch next();
  Batch next_in_micro_batches(Stream& stream);

  /// The device of the batches (`Batch::device`).
  DeviceId device() const;
  /// Number of batches in an epoch, the same on every rank; 0 for a one-pass dataset, whose length
  /// is known only at its end.
  std::uint64_t batches_per_epoch() const;
  /// Number of batches in the whole run, including those before `resume.from`; nullopt if the run
  /// never ends or its dataset is a one-pass dataset.
  std::optional<std::uint64_t> total_batches() const;
  /// Changes the weights of a run whose order is `weighted`. The new weights are used from the
  /// returned epoch on; earlier epochs keep their weights. Checks the weights as
  /// `Order::reweighted` does, with the same errors. A failed call changes nothing. May be called
  /// at any time from any thread. Waits neither for the device nor for callbacks. The call needs
  /// about 56 bytes for each weight; 24 of them are kept until the last epoch with these weights
  /// ends.
  ///
  /// Up to N batches are planned before the trainer takes them. N is `slots.prefetch`, plus
  /// `slots.device_slots` if the run copies batches. The next N batches may already be planned with
  /// the old weights. The returned epoch is the first one that begins after these N batches. It
  /// does not depend on the speed of threads. To change the weights of the next epoch, call this
  /// function while at least N batches of the current epoch are not yet taken. If fewer are left,
  /// the weights change in a later epoch: in the epoch after the next one, if an epoch has at least
  /// N batches. With `slots.epoch_break`, a call before the first `next` of an epoch changes the
  /// weights of that epoch. The first call of `next` begins the epoch even if it returns no batch
  /// because of its timeout. If two calls return the same epoch, the weights of the later call are
  /// used. Weights for an epoch after the run's end are never used.
  ///
  /// All ranks must call it with the same weights after the same number of batches. To resume a
  /// run, make the order with the weights of the state's epoch and all later weights that the state
  /// lists (`State::new_weights`).
  std::uint64_t set_weights(std::span<const double> weights);
  /// State after the last batch handed out. A new pipeline can continue from it.
  State state() const;
  /// Memory of the slots, and the limits of the workers' scratch, the record hints and the cache.
  /// All are known before the first batch is made.
  MemoryReport memory() const;
  /// Statistics since the start, or since the last `restart_report()` or `take_report()`.
  Report report() const;
  /// Resets the report's times and counts. Call it after a warm-up. Keeps the bad records and the
  /// memory figures.
  void restart_report();
  /// Does `report()` and `restart_report()` in one step, at a lower cost than both calls. The
  /// periods of consecutive reports have neither gaps nor overlaps.
  Report take_report();

  /// Ends the run: threads in `next` get an `Error` (`stopped`). Throws `Error` (`timeout`, with
  /// the stage) if a call or device work of the run has not ended after `debug.stop_timeout`.
  void stop();

 private:
  std::shared_ptr<Engine> engine() const;
  void end() noexcept;

  std::shared_ptr<Engine> engine_;
  std::chrono::milliseconds stop_timeout_{0};
  std::function<void(std::string_view)> on_stuck_;
};

}  // namespace millrace
