// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "pipeline/slots/slot_queues.h"
#include "pipeline/upload.h"

namespace millrace {

/// Longest wait for a device before its completions are polled again.
inline constexpr std::chrono::milliseconds poll_interval{5};

/// Delivers finished micro-batches to the trainer. The constructor makes the output slots, before
/// the threads start. Then two threads call the methods that are marked for them: the upload thread
/// (`UploadThread`), and the plan-recycle thread (`PlanRecycleThread`), which plans batches for
/// free host slots and frees used ones. A delivery shares ownership of the slots (`queues_`), since
/// the streams of `CopyDelivery::upload_` use their memory.
class BatchDelivery {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~BatchDelivery() = default;
  BatchDelivery(const BatchDelivery&) = delete;
  BatchDelivery& operator=(const BatchDelivery&) = delete;

  /// For the upload thread: delivers a finished micro-batch. Call it for micro-batches in plan
  /// order. It may return without delivery if the slot queues are closed.
  virtual void deliver(HostSlot& host, std::size_t micro_batch) = 0;
  /// For the upload thread: tells the slot queues which work the device has completed. Returns the
  /// time of the next poll.
  virtual Clock::time_point poll_completions() { return Clock::time_point::max(); }
  /// For the plan-recycle thread: waits until no copy or stream reads a leaving slot any more.
  /// Returns false at the timeout.
  virtual bool wait_until_unused(HostSlot& host, std::chrono::nanoseconds timeout) = 0;
  /// For the plan-recycle thread, after the upload thread has ended: waits for all enqueued work.
  /// Returns false if some work has not ended by `deadline`.
  virtual bool drain(Clock::time_point) noexcept { return true; }

  /// Size of the staging slots in bytes.
  virtual std::size_t staging_bytes() const { return 0; }

 protected:
  BatchDelivery(std::shared_ptr<SlotQueues> queues, ProfilerRanges* profiler)
      : queues_(std::move(queues)), profiler_(profiler) {}

  /// Copies a micro-batch's record indices and validity into the output slot. For the batch's first
  /// micro-batch, it also copies the batch's plan and resets the slot.
  void copy_results(const HostSlot& host, OutputSlot& output, std::size_t micro_batch) const;

  const std::shared_ptr<SlotQueues> queues_;
  ProfilerRanges* const profiler_;
};

/// Hands out the host slot itself.
class InPlaceDelivery final : public BatchDelivery {
 public:
  InPlaceDelivery(std::shared_ptr<SlotQueues> queues, ProfilerRanges* profiler);

  void deliver(HostSlot& host, std::size_t micro_batch) override;
  bool wait_until_unused(HostSlot& host, std::chrono::nanoseconds timeout) override;

 private:
  /// One per host slot.
  std::vector<OutputSlot*> outputs_;
};

/// Functions of the sample workers that make, on the host, samples that a device stage has marked.
struct HostFallback {
  /// Makes a sample of a host slot again, without the device. Returns the sample's field that has
  /// device stages, valid until the next call. Returns null if the run has ended.
  std::function<const std::byte*(HostSlot&, std::size_t sample)> sample;
  /// Runs the batch transform again, after the marked samples have been made again. Returns false
  /// if the run has ended.
  std::function<bool(HostSlot&)> batch;
};

/// Copies batches to device slots, and converts them there if the options request it. If a device
/// stage marks a sample, lets the sample workers make it again.
class CopyDelivery final : public BatchDelivery {
 public:
  CopyDelivery(std::shared_ptr<SlotQueues> queues, Device& device, std::unique_ptr<Upload> upload,
               std::size_t slots, std::size_t slot_bytes, HostFallback host_fallback = {});

  void deliver(HostSlot& host, std::size_t micro_batch) override;
  Clock::time_point poll_completions() override;
  bool wait_until_unused(HostSlot& host, std::chrono::nanoseconds timeout) override;
  bool drain(Clock::time_point deadline) noexcept override { return upload_->drain(deadline); }
  std::size_t staging_bytes() const override { return upload_->staging_bytes(); }

 private:
  bool replace_marked(HostSlot& host, std::size_t micro_batch);
  template <typename Wait>
  bool wait_unless_closed(const Wait& wait) const;

  const std::unique_ptr<Upload> upload_;
  const HostFallback host_fallback_;
  /// Output slot of the current batch.
  OutputSlot* output_ = nullptr;
  std::vector<RunMeter::StreamWork> conversions_;
};

}  // namespace millrace
