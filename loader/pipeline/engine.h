// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/pipeline.h>
#include <millrace/sampler.h>

#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "pipeline/batch_fields.h"
#include "pipeline/pipeline_nodes.h"
#include "pipeline/road_meter.h"
#include "pipeline/sample_maker.h"
#include "pipeline/schedule.h"
#include "pipeline/slot_layout.h"
#include "pipeline/slots.h"
#include "pipeline/upload.h"
#include "runtime/auto_workers.h"

namespace millrace {

/// A pipeline's inside: the slots, the two threads that move them along the road, and what is
/// waiting where.
///
///     reaper: free host slot -> plan a batch -> workers: make its samples -> feeder: copy ->
///     next(): hand out -> Batch: release
///        ^--------------- the slot's copy has passed ----------------'
///
/// Held by the pipeline, its two threads, the jobs given to workers and the live batches, so
/// whoever is last ends it. It uses the runtime's pools only until `stop` has begun.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  using Clock = std::chrono::steady_clock;

  /// What `next` is asked for.
  struct Request {
    /// None: for use on the host.
    Stream* stream = nullptr;
    /// None: wait as long as it takes, but not for slots that live batches hold.
    std::optional<std::chrono::nanoseconds> timeout{};
    bool in_parts = false;
  };

  /// What does not end.
  struct Stuck {
    std::string stage;
    std::string what;
  };

  Engine(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const Transform> transform,
         std::shared_ptr<Device> device, const PipelineOptions& options, Runtime& runtime);
  ~Engine();

  /// Starts the threads; once, after the constructor, when a shared pointer exists.
  void start();
  /// Ends the run and everything that works for it. What is still running after `timeout` is let
  /// go; then the result says what it is.
  std::optional<Stuck> stop(std::chrono::nanoseconds timeout);

  Batch next(const Request& request);
  State state() const;
  Report report() const;
  void restart_report();

  // For Batch, Part and PartRange.
  const SlotLayout& layout() const { return batch_layout_; }
  /// The run's state at a position of it.
  State state_at(std::uint64_t position) const;
  std::size_t part_count(const Lease& lease) const;
  std::size_t part_begin(std::size_t part) const { return parts_.begin(part); }
  void take_part(Lease& lease, std::size_t part);
  void record_stream(Lease& lease, Stream& stream);
  void release(Lease& lease) noexcept;

 private:
  class BatchJob;

  // Set-up (engine.cpp).
  void make_host_slots();
  void make_leases();

  // The road (engine_threads.cpp).
  void run_thread(const char* stage, void (Engine::*body)(), bool Engine::*done) noexcept;
  void feed();
  bool upload_batch(HostSlot& host);
  void upload_part(HostSlot& host, Lease& lease, std::size_t part, std::size_t copied);
  HostSlot* wait_for_planned();
  bool wait_for_part(const HostSlot& host, std::size_t part);
  Lease* wait_for_lease(std::uint64_t batch);
  void note_conversions();
  void reap();
  HostSlot* take_free_host();
  bool return_one_host();
  void note_copies(const HostSlot& host) MILLRACE_REQUIRES(mutex_);
  void plan(HostSlot& host);
  void prefetch_records(std::uint64_t number);
  void make_sample(HostSlot& host, std::size_t sample, unsigned worker) noexcept;
  void drain();

  // Closing (engine.cpp).
  /// Closes the road with the exception being handled, unless it is closed already.
  void fail(const char* stage) noexcept;
  /// The same for the trainer's thread, which is told the run's first error.
  [[noreturn]] void fail_and_throw(const char* stage);
  void close() MILLRACE_REQUIRES(mutex_);
  void throw_if_closed() const MILLRACE_REQUIRES(mutex_);

  // Handing out (engine_handout.cpp).
  std::uint64_t next_number() const;
  Lease* wait_for_batch(const Request& request);
  void hand_out(Lease& lease, const Request& request, Clock::time_point asked)
      MILLRACE_REQUIRES(mutex_);
  void wait_for_copies(Lease& lease, const Request& request);
  void use_on(Lease& lease, Stream& stream);
  /// Throws, without ending the run, where `stream` is being captured; null is not.
  void refuse_capture(Stream* stream, const char* call);
  void recycle(Lease& lease) MILLRACE_REQUIRES(mutex_);
  void adapt_workers(Clock::time_point now) MILLRACE_REQUIRES(mutex_);

  /// Whether blocking calls on the batch path end the run by now.
  bool watched() const {
    return options_.debug.forbid_blocking_calls && steady_.load(std::memory_order_relaxed);
  }

  /// Tells the meter what the road looks like; to be called after what `RoadState` has may have
  /// changed.
  void note_road(Clock::time_point now) MILLRACE_REQUIRES(mutex_);

  const std::shared_ptr<const Dataset> dataset_;
  const std::shared_ptr<const Transform> transform_;
  const std::shared_ptr<Device> device_;
  const PipelineOptions options_;
  const Sampler sampler_;
  const Schedule schedule_;
  const bool copies_;
  const BatchFields fields_;
  const Parts parts_;
  /// What is made, and what is handed out: where nothing is copied, the same.
  const SlotLayout host_layout_;
  const SlotLayout batch_layout_;
  /// The pipeline's, which batches may outlive: used until the road is closed, and for reports.
  Runtime& runtime_;
  PipelineNodes nodes_;
  const std::size_t trace_group_;
  /// The device's; null without one.
  ProfilerRanges* const profiler_;
  SampleMaker maker_;
  /// The run's state but for its position.
  const State identity_;
  const std::uint64_t first_position_;
  std::vector<std::unique_ptr<HostSlot>> hosts_;
  std::vector<std::unique_ptr<Lease>> leases_;
  /// On a device that copies. After the slots, since it goes first.
  std::unique_ptr<Upload> upload_;
  std::thread feeder_;
  std::thread reaper_;

  // The feeder's alone.
  std::vector<RoadMeter::StreamWork> conversions_;
  // The reaper's alone.
  std::uint64_t next_planned_;
  std::uint64_t next_prefetched_;
  std::vector<std::uint64_t> prefetch_indices_;

  /// Held by whoever ends the run; comes before `mutex_`.
  Mutex stop_mutex_;
  mutable Mutex mutex_;
  /// Each for one kind of waiter.
  Condition feeder_wakes_;
  Condition reaper_wakes_;
  Condition trainer_wakes_;
  Condition stopper_wakes_;
  /// Read without the mutex by workers, who only want to end early.
  std::atomic<bool> closed_{false};
  /// Every slot has been used; orders nothing.
  std::atomic<bool> steady_{false};
  std::exception_ptr error_ MILLRACE_GUARDED_BY(mutex_);
  std::deque<HostSlot*> free_hosts_ MILLRACE_GUARDED_BY(mutex_);
  std::deque<HostSlot*> planned_ MILLRACE_GUARDED_BY(mutex_);
  /// Copies are under way out of these, in order.
  std::deque<HostSlot*> copying_ MILLRACE_GUARDED_BY(mutex_);
  std::deque<Lease*> free_leases_ MILLRACE_GUARDED_BY(mutex_);
  /// Without copying: given back, but streams still use them.
  std::deque<Lease*> releasing_ MILLRACE_GUARDED_BY(mutex_);
  std::deque<Lease*> ready_ MILLRACE_GUARDED_BY(mutex_);
  std::size_t live_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::uint64_t next_handed_out_ MILLRACE_GUARDED_BY(mutex_);
  /// Once this is the next one, `steady_` is true.
  const std::uint64_t steady_at_;
  std::uint64_t position_ MILLRACE_GUARDED_BY(mutex_);
  /// The number behind the batches that are made in full; below `next_handed_out_` where parts went
  /// out early.
  std::uint64_t made_ MILLRACE_GUARDED_BY(mutex_);
  bool feeder_done_ MILLRACE_GUARDED_BY(mutex_) = false;
  bool reaper_done_ MILLRACE_GUARDED_BY(mutex_) = false;

  /// Samples that are planned and that no worker has begun; workers count down, and who takes the
  /// last one looks at the road.
  std::atomic<std::size_t> unbegun_{0};

  RoadMeter meter_ MILLRACE_GUARDED_BY(mutex_);
  WorkCounts report_base_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<PipelineNodes::Made> nodes_base_ MILLRACE_GUARDED_BY(mutex_);
  std::optional<std::chrono::nanoseconds> delay_base_ MILLRACE_GUARDED_BY(mutex_);

  /// For an adaptive runtime: the chooser, and where its window of time began.
  AutoWorkers auto_workers_ MILLRACE_GUARDED_BY(mutex_);
  struct AdaptWindow {
    Clock::time_point begin = Clock::now();
    std::uint64_t batches = 0;
    std::chrono::nanoseconds busy{0};
    std::chrono::nanoseconds stalled{0};
  };
  AdaptWindow adapt_window_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
