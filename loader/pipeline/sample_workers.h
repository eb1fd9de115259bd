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

/// A stage that does not finish.
struct Stuck {
  std::string stage;
  std::string what;
};

/// The workers that make the samples of planned slots. Its jobs share ownership of it, so a sample
/// that hangs keeps the dataset and the transform alive. The runtime's pools may be gone by then:
/// they are used only before `dismiss`, and for reports. All methods may be called from any thread
/// at once.
class SampleWorkers final : public HostWorkers, public std::enable_shared_from_this<SampleWorkers> {
 public:
  using Clock = std::chrono::steady_clock;

  /// Makes the samples of `maker` in slots of this layout.
  SampleWorkers(std::unique_ptr<SampleMaker> maker, const BatchFields& fields,
                const SlotLayout& layout, Runtime& runtime, PipelineNodes nodes);

  PipelineNodes& nodes() { return nodes_; }

  /// Tells the runtime that all workers are needed.
  void start();
  /// Makes the samples of a planned slot and reports each to the slot queues.
  void submit(std::shared_ptr<SlotQueues> queues, HostSlot& host);
  /// Makes a sample again on the calling thread, one at a time, without the device. Returns its
  /// packed field; null, and fails the queues, if it cannot be made.
  const std::byte* make_again(SlotQueues& queues, HostSlot& host, std::size_t sample) noexcept;
  /// Runs the batch transform once more, if there is one. Returns false, and fails the queues, if
  /// it throws.
  bool finish_again(SlotQueues& queues, HostSlot& host) noexcept;
  /// Runs `item` for each of `items` items, with the workers' help between samples. Never waits for
  /// a worker to begin, so it returns whatever the pools do.
  void share(std::size_t items, const std::function<void(std::size_t)>& item) noexcept override;
  /// Call after a batch is handed out: updates from time to time how many workers are needed, if
  /// the runtime is adaptive.
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
  /// Figures since the number of workers was last chosen.
  struct Window {
    Clock::time_point begin = Clock::now();
    std::uint64_t batches = 0;
    std::chrono::nanoseconds busy{0};
    std::chrono::nanoseconds stalled{0};
  };
  Window window_ MILLRACE_GUARDED_BY(mutex_);
  /// Recent time per sample, with the totals of samples and of time at the last update.
  struct Pace {
    std::chrono::nanoseconds each = std::chrono::nanoseconds::max();
    std::uint64_t samples = 0;
    std::chrono::nanoseconds busy{0};
  };
  Pace pace_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
