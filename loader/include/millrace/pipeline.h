// SPDX-License-Identifier: Apache-2.0
// The entry point of the loader. A trainer describes a run in `PipelineOptions`, makes a `Pipeline`
// with these options, and takes batches from the pipeline.
//
// Threads: every method of a `Pipeline` may be called from any thread, several at a time. Only
// moving and destroying it require that no other thread uses it.
// Lifetimes: a pipeline shares ownership of its dataset, transform, device and runtime. A `Batch`
// may outlive its pipeline. A stream must outlive the batches used on it, unless a batch keeps the
// stream alive (see `Batch::record_stream`).
// Fork: a child of fork() has none of the pipeline's threads. In the child, destructors return at
// once and free nothing. Using the parent's pipeline there is an error, and so is making a pipeline
// with the parent's runtime. Fork before making the first pipeline, or make new pipelines and
// runtimes in the child.
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

/// A run over a dataset. Batches come in order. The runtime's workers make them ahead, and their
/// copies to the device begin before they are requested. If two threads call `next`, each gets a
/// batch of its own.
class Pipeline {
 public:
  /// Allocates memory for all slots and starts working. Throws `Error` (`invalid_argument`) that
  /// names the wrong option. Throws `Error` (`device`) if the device cannot provide memory, a
  /// stream or an event. With `Order::bucketed_by`, also throws the errors of reading. Without
  /// `PipelineOptions::runtime`, also throws the errors of `Runtime`. Throws `std::system_error` if
  /// a thread cannot be started.
  Pipeline(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const Transform> transform,
           std::shared_ptr<Device> device, PipelineOptions options = {});
  /// Stops the run. Returns within `debug.stop_timeout` even if a call of the dataset, transform or
  /// device hangs. Objects that the call uses are then kept until the call returns, and
  /// `debug.on_stuck` is called.
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;

  /// Returns the next batch, or an empty batch after the last epoch. Blocks until the batch is
  /// made. With a stream, the stream waits for the data, and this thread does not wait for the
  /// device. Without a stream, the call returns when the data can be read. If the device copies
  /// data, the call also waits for the copy.
  ///
  /// After the run's first error, every call throws that error. The run continues after three other
  /// `Error`s. `slots_exhausted` is thrown if live batches hold every slot and no timeout was
  /// given. `timeout` is thrown if a timeout was given and has passed; if live batches hold every
  /// slot then, it is a `SlotsHeld`. `invalid_argument` is thrown while the stream is being
  /// captured into a graph.
  Batch next(const NextRequest& request);
  /// The short forms take a batch on a stream, on a stream with a timeout, on the host, or
  /// micro-batch by micro-batch.
  Batch next(Stream& stream);
  Batch next(Stream& stream, std::chrono::nanoseconds timeout);
  Batch next();
  Batch next_in_micro_batches(Stream& stream);

  /// The device of the batches (`Batch::device`).
  DeviceId device() const;
  /// Number of batches in an epoch, the same on every rank; 0 for a one-pass dataset, whose length
  /// is known only at its end.
  std::uint64_t batches_per_epoch() const;
  /// Number of batches in the whole run, including those before `resume.from`; nullopt if it never
  /// ends, and for a one-pass dataset.
  std::optional<std::uint64_t> total_batches() const;
  /// Changes the weights of a run whose order is `weighted`. The new weights hold from the returned
  /// epoch on; epochs before it keep theirs. Checks the weights as `Order::reweighted` does, with
  /// the same errors. A failed call changes nothing. May be called at any time from any thread.
  /// Waits neither for the device nor for callbacks. Needs about 56 bytes for each weight, and
  /// keeps 24 until the epochs with these weights are over.
  ///
  /// Batches are planned before the trainer takes them: at most `slots.prefetch` of them, and
  /// `slots.device_slots` more if the run copies batches. The returned epoch is the first one that
  /// lies behind these. It follows from the number of batches handed out, not from the speed of
  /// threads. For new weights in the very next epoch, call this while at least that many batches of
  /// the current epoch are still to be taken. A later call counts for the epoch after it. With
  /// `slots.epoch_break`, calls before the first `next` of an epoch count for that epoch. A `next`
  /// that times out begins the epoch, too. If two calls return the same epoch, the later one
  /// counts. An epoch after the run's end never comes.
  ///
  /// All ranks must call it with the same weights after the same number of batches. A run resumes
  /// with the weights of its epoch, and with those later ones that its state names
  /// (`State::new_weights`).
  std::uint64_t set_weights(std::span<const double> weights);
  /// State after the last batch handed out. A new pipeline can continue from it.
  State state() const;
  /// Memory of the slots, and the limits of all other memory that the run takes. They are known
  /// before the first batch is made.
  MemoryReport memory() const;
  /// Statistics since the start or the last `restart_report()`.
  Report report() const;
  /// Resets the report's times and counts. Call it after a warm-up. Bad records and memory stay.
  void restart_report();
  /// Does `report()` and `restart_report()` in one step, which costs less. The periods of
  /// consecutive reports have neither gaps nor overlaps.
  Report take_report();

  /// Ends the run: threads in `next` get an `Error` (`stopped`). Throws `Error` (`timeout`, with
  /// the stage) if something is still running after `debug.stop_timeout`.
  void stop();

 private:
  std::shared_ptr<Engine> engine() const;
  void end() noexcept;

  std::shared_ptr<Engine> engine_;
  std::chrono::milliseconds stop_timeout_{0};
  std::function<void(std::string_view)> on_stuck_;
};

}  // namespace millrace
