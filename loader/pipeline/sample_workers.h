// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/conversion_work.h>
#include <millrace/runtime.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "pipeline/batch_fields.h"
#include "pipeline/pipeline_nodes.h"
#include "pipeline/samples/sample_maker.h"
#include "pipeline/slots/slot_queues.h"
#include "runtime/auto_workers.h"

namespace millrace {

/// Name of a stage that has not finished in time, and a sentence about it.
struct Stuck {
  std::string stage;
  std::string what;
};

/// The workers that make the samples of planned slots. Its jobs share ownership of it, so a sample
/// that hangs keeps the dataset and the transform alive. The runtime's pools may be destroyed
/// earlier: they are used only before `dismiss`, and for reports. All methods may be called by
/// several threads at the same time.
class SampleWorkers final : public HostWorkers, public std::enable_shared_from_this<SampleWorkers> {
 public:
  using Clock = std::chrono::steady_clock;

  /// Lets `maker` make samples in slots of this layout.
  SampleWorkers(std::unique_ptr<SampleMaker> maker, const BatchFields& fields,
                const SlotLayout& layout, Runtime& runtime, PipelineNodes nodes);

  PipelineNodes& nodes() { return nodes_; }

  /// Tells the runtime that all workers are needed.
  void start();
  /// Submits a job that makes the samples of a planned slot and reports them to the slot queues.
  void submit(std::shared_ptr<SlotQueues> queues, HostSlot& host);
  /// Makes a sample again on the calling thread, without the device. One thread at a time may call
  /// it. Returns the sample's packed field. If the sample fails, closes the queues with the error
  /// and returns null. Also returns null if the queues are closed.
  const std::byte* make_again(SlotQueues& queues, HostSlot& host, std::size_t sample) noexcept;
  /// Runs the batch transform once more, if there is one. If it throws, closes the queues with the
  /// error and returns false.
  bool finish_batch_again(SlotQueues& queues, HostSlot& host) noexcept;
  /// Calls `item` with each number below `items`, on the calling thread and on workers that are
  /// between two samples. It never waits for a worker to begin, so it also returns if all workers
  /// are busy.
  void share(std::size_t items, const std::function<void(std::size_t)>& item) noexcept override;
  /// Updates the number of needed workers from time to time, if the runtime is adaptive. Call it
  /// after each batch is handed out.
  void adapt(const SlotQueues& queues);
  /// Number of active workers.
  unsigned concurrency() const;
  /// Cancels its jobs. Returns the stage that has not finished by `deadline`, if any.
  std::optional<Stuck> dismiss(Clock::time_point deadline);

  WorkerFigures figures() const;
  /// Writes the present sizes of hints and cache into a report.
  void fill(MemoryReport& memory) const;
  /// Writes the workers' figures since `base` into a report.
  void fill(Report& report, const WorkerFigures& now, const WorkerFigures& base) const;

 private:
  class BatchJob;
  class TaskRange;
  class SharedJob;

  std::size_t samples_at_a_time(std::size_t samples) MILLRACE_REQUIRES(mutex_);
  void make_samples(SlotQueues& queues, HostSlot& host, std::size_t first, std::size_t count,
                    unsigned worker) noexcept;
  void finish_batch(SlotQueues& queues, HostSlot& host, unsigned worker);

  const std::unique_ptr<SampleMaker> maker_;
  const BatchFields fields_;
  const SlotLayout layout_;
  Runtime& runtime_;
  PipelineNodes nodes_;

  /// Held while the pools are used.
  mutable Mutex mutex_;
  bool dismissed_ MILLRACE_GUARDED_BY(mutex_) = false;
  AutoWorkers auto_workers_ MILLRACE_GUARDED_BY(mutex_);
  /// Time at which the number of workers was last chosen, the number of batches since then, and the
  /// total times at that time.
  struct SinceAdapted {
    Clock::time_point begin = Clock::now();
    std::uint64_t batches = 0;
    std::chrono::nanoseconds busy{0};
    std::chrono::nanoseconds stalled{0};
  };
  SinceAdapted since_adapted_ MILLRACE_GUARDED_BY(mutex_);
  /// Recent time per sample, with the totals of samples and of time at the last update.
  struct Pace {
    std::chrono::nanoseconds each = std::chrono::nanoseconds::max();
    std::uint64_t samples = 0;
    std::chrono::nanoseconds busy{0};
  };
  Pace pace_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
