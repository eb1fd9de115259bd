// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/pipeline.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/owner_process.h"
#include "pipeline/batch_consumer.h"
#include "pipeline/batch_delivery.h"
#include "pipeline/pipeline_threads.h"
#include "pipeline/planning/planner.h"
#include "pipeline/planning/run_sampler.h"
#include "pipeline/prefetcher.h"
#include "pipeline/sample_workers.h"
#include "pipeline/slots/slot_queues.h"

namespace millrace {

/// The parts of a pipeline and the path of a slot through them:
///
///     plan-recycle thread: free host slot -> planner -> sample workers -> upload thread: batch
///     delivery -> batch consumer: hands out -> Batch: release
///        ^--------------- nothing reads the slot any more ----------------'
///
/// Only the pipeline owns the engine. Threads, jobs and live batches share ownership of the parts
/// that they use. All methods may be called by several threads at the same time.
class Engine {
 public:
  /// Allocates the memory of all slots.
  Engine(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const Transform> transform,
         std::shared_ptr<Device> device, const PipelineOptions& options,
         std::shared_ptr<Runtime> runtime);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Whether this process started the threads: false in a child of fork().
  bool is_owner_process() const { return process_.is_owner(); }
  /// Starts the threads. Call once.
  void start();
  /// Ends the run, its threads and its jobs. Detaches threads that still run at `deadline`. Returns
  /// one stage that did not finish in time; nullopt if all did.
  std::optional<Stuck> stop(SlotQueues::Clock::time_point deadline);

  DeviceId device() const { return device_->id(); }
  const Schedule& schedule() const { return planner_->schedule(); }
  /// Whether an epoch's length is known before its end; false for a stream.
  bool has_known_length() const { return windows_ == nullptr; }
  Batch next(const NextRequest& request);
  State state() const { return consumer_->state_at(queues_->position()); }
  std::uint64_t set_weights(std::span<const double> weights);
  MemoryReport memory() const;
  Report report() const;
  void restart_report() {
    const MutexLock lock(report_mutex_);
    queues_->take_report(sample_workers_->figures());
  }
  Report take_report();

 private:
  void close_reading();
  Report report_of(const RunMeter& meter, const WorkerFigures& figures,
                   SlotQueues::Clock::time_point now) const;

  const OwnerProcess process_;
  const std::string name_;
  const std::shared_ptr<Runtime> runtime_;
  const std::shared_ptr<Device> device_;
  std::shared_ptr<SampleWorkers> sample_workers_;
  std::shared_ptr<RunSampler> sampler_;
  std::shared_ptr<Planner> planner_;
  /// Null if the dataset is a stream.
  std::shared_ptr<Prefetcher> prefetcher_;
  /// Null unless the dataset is a stream.
  std::shared_ptr<StreamWindows> windows_;
  std::shared_ptr<SlotQueues> queues_;
  std::shared_ptr<BatchDelivery> delivery_;
  std::shared_ptr<BatchConsumer> consumer_;
  /// Largest number of batches that are planned but not handed out.
  std::uint64_t max_ahead_ = 0;
  MemoryReport memory_;
  std::vector<std::string> warnings_;

  /// Held while a new report begins. So no report begins with older figures than the report before.
  Mutex report_mutex_;
  /// Held while the run ends.
  Mutex stop_mutex_;
  std::optional<PipelineThread> upload_thread_ MILLRACE_GUARDED_BY(stop_mutex_);
  std::optional<PipelineThread> plan_recycle_thread_ MILLRACE_GUARDED_BY(stop_mutex_);
  /// The prefetch thread; if the dataset is a stream, the thread that reads it.
  std::optional<PipelineThread> reading_ahead_ MILLRACE_GUARDED_BY(stop_mutex_);
};

}  // namespace millrace
