// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dataset/stream/stream_windows.h"
#include "pipeline/batch_delivery.h"
#include "pipeline/planning/planner.h"
#include "pipeline/prefetcher.h"
#include "pipeline/sample_workers.h"
#include "pipeline/slots/slot_queues.h"

namespace millrace {

/// One of a pipeline's threads. The thread owns its body, so a detached thread keeps the objects
/// that it uses until it ends. One thread at a time may call the methods.
class PipelineThread {
 public:
  /// Runs `body`, which must not throw, on a thread with this name (at most 15 bytes). Throws
  /// `std::system_error` if the thread cannot be started.
  template <typename Body>
  explicit PipelineThread(Body body, std::string name = "millrace") {
    std::promise<void> ending;
    ended_ = ending.get_future().share();
    thread_ = std::thread(
        [body = std::move(body), name = std::move(name), ending = std::move(ending)]() mutable {
          pthread_setname_np(pthread_self(), name.c_str());
          body.run();
          ending.set_value();
        });
  }
  /// Detaches the thread if `end` was not called.
  ~PipelineThread() {
    if (thread_.joinable()) thread_.detach();
  }
  PipelineThread(const PipelineThread&) = delete;
  PipelineThread& operator=(const PipelineThread&) = delete;

  /// Becomes ready when the body returns.
  const std::shared_future<void>& ended() const { return ended_; }
  /// Joins the thread. If the body has not returned by `deadline`, detaches the thread and returns
  /// false. May be called again.
  bool end(std::chrono::steady_clock::time_point deadline) {
    const bool ended = ended_.wait_until(deadline) == std::future_status::ready;
    if (thread_.joinable()) ended ? thread_.join() : thread_.detach();
    return ended;
  }

 private:
  std::shared_future<void> ended_;
  std::thread thread_;
};

/// Body of the upload thread: passes finished micro-batches to the batch delivery, in plan order.
struct UploadThread {
  std::shared_ptr<Device> device;
  std::shared_ptr<SlotQueues> queues;
  std::shared_ptr<BatchDelivery> delivery;

  /// Returns when the slot queues are closed.
  void run() noexcept;
};

/// Body of the prefetch thread.
struct PrefetchBody {
  std::shared_ptr<SlotQueues> queues;
  std::shared_ptr<Prefetcher> prefetcher;

  void run() noexcept { prefetcher->run(*queues); }
};

/// Body of the thread that reads a stream.
struct StreamBody {
  std::shared_ptr<StreamWindows> windows;

  void run() noexcept { windows->read(); }
};

/// Body of the plan-recycle thread: plans batches for free host slots, and frees slots that nothing
/// reads any more.
struct PlanRecycleThread {
  std::shared_ptr<Device> device;
  std::shared_ptr<SlotQueues> queues;
  std::shared_ptr<BatchDelivery> delivery;
  std::shared_ptr<Planner> planner;
  std::shared_ptr<SampleWorkers> sample_workers;
  /// Null if the dataset is a stream.
  std::shared_ptr<Prefetcher> prefetcher;
  /// Ready when the upload thread has ended. `run` waits for this before it waits for queued work.
  std::shared_future<void> upload_ended;
  std::vector<HostSlot*> leaving{};

  /// Returns after the slot queues are closed, as soon as nothing uses the slots any more, at the
  /// latest after `patience_with_device`.
  void run() noexcept;

 private:
  void plan(HostSlot& host);
  void free_left();
  void drain() noexcept;
};

}  // namespace millrace
