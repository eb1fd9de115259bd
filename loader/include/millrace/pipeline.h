// SPDX-License-Identifier: Apache-2.0
// The entry point of the loader: a trainer describes a run in `PipelineOptions`, makes a `Pipeline`
// of it and takes batches from it.
//
// Threads: every method of a `Pipeline` may be called from any thread, several at a time. Only
// moving and destroying it require that no other thread uses it.
// Lifetimes: a pipeline shares ownership of its dataset, transform, device and runtime. A `Batch`
// may outlive its pipeline. A stream that is given to `next` must outlive the batches that are used
// on it, unless they keep it (`Batch::record_stream`).
// Fork: a child of fork() has none of the pipeline's threads. Destructors return at once in the
// child and free nothing; using a pipeline there is an error. Fork before making the first
// pipeline, or make new pipelines in the child.
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
  /// Allocates memory for all slots and starts working. Throws `Error`: `invalid_argument` that
  /// names the wrong option; `device` if the device cannot provide memory, a stream or an event;
  /// for `Order::bucketed_by` any error of reading; without `PipelineOptions::runtime` also the
  /// errors of `Runtime`. Throws `std::system_error` if a thread cannot be started.
  Pipeline(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const Transform> transform,
           std::shared_ptr<Device> device, PipelineOptions options = {});
  /// Stops the run. Returns within `debug.stop_timeout` even if a call of the dataset, transform or
  /// device hangs. Objects that the call uses are then kept until it returns, and `debug.on_stuck`
  /// is called.
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;

  /// Returns the next batch; an empty one after the last epoch. Blocks until the batch is made.
  /// With a stream, the stream waits for the data, and this thread does not wait for the device.
  /// Without a stream, it returns when the data can be read; on a device that copies it waits for
  /// the copy.
  ///
  /// Throws the run's first error, on every call from then on. Also throws `Error`s after which the
  /// run continues: `slots_exhausted` if live batches hold every slot and no timeout was given;
  /// `timeout` when that has passed; `invalid_argument` while the stream is being captured into a
  /// graph.
  Batch next(const NextRequest& request);
  /// Short forms: on a stream, on a stream with a timeout, on the host, and micro-batch by
  /// micro-batch.
  Batch next(Stream& stream);
  Batch next(Stream& stream, std::chrono::nanoseconds timeout);
  Batch next();
  Batch next_in_micro_batches(Stream& stream);

  /// Number of batches in an epoch, the same on every rank.
  std::uint64_t batches_per_epoch() const;
  /// Number of batches in the whole run, including those before `resume.from`; nullopt if it never
  /// ends.
  std::optional<std::uint64_t> total_batches() const;
  /// State from which a new pipeline would continue: after the last batch handed out.
  State state() const;
  /// Statistics since the start or the last `restart_report()`.
  Report report() const;
  /// Resets the report's times and counts, after a warm-up. Bad records and memory stay.
  void restart_report();
  /// Does `report()` and `restart_report()` in one step, which costs less. Consecutive reports have
  /// neither gaps nor overlaps.
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
