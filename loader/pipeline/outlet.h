// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "pipeline/road/road.h"
#include "pipeline/upload.h"

namespace millrace {

/// How long the threads wait for a device before they look around again.
inline constexpr std::chrono::milliseconds look_around{5};

/// How made micro-batches reach the trainer. It makes the leases, before the threads start; then
/// the feeder and the reaper call it, each what is said to be theirs. Ends before the road's slots.
class Outlet {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Outlet() = default;
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  /// The feeder's: puts a made micro-batch on its way. Micro-batches come in order; nothing happens
  /// if the road is closed.
  virtual void pass_on(HostSlot& host, std::size_t micro_batch) = 0;
  /// The feeder's: tells the road what has ended on the device; says when to look again.
  virtual Clock::time_point look() { return Clock::time_point::max(); }
  /// The reaper's: waits until nothing reads a leaving slot any more; false if that is not so after
  /// `timeout`.
  virtual bool wait_until_left(HostSlot& host, std::chrono::nanoseconds timeout) = 0;
  /// The reaper's, when the feeder has ended: waits for all that was enqueued; false if that has
  /// not ended by `deadline`.
  virtual bool drain(Clock::time_point) noexcept { return true; }

  /// Bytes of staging slots.
  virtual std::size_t staging_bytes() const { return 0; }

 protected:
  Outlet(std::shared_ptr<Road> road, ProfilerRanges* profiler)
      : road_(std::move(road)), profiler_(profiler) {}

  /// What the trainer is told of a micro-batch's samples, and with the first one of the batch.
  void fill_in(const HostSlot& host, Lease& lease, std::size_t micro_batch) const;

  const std::shared_ptr<Road> road_;
  ProfilerRanges* const profiler_;
};

/// The host slot itself is the batch.
class InPlaceOutlet final : public Outlet {
 public:
  InPlaceOutlet(std::shared_ptr<Road> road, ProfilerRanges* profiler);

  void pass_on(HostSlot& host, std::size_t micro_batch) override;
  bool wait_until_left(HostSlot& host, std::chrono::nanoseconds timeout) override;

 private:
  /// Per host slot.
  std::vector<Lease*> leases_;
};

/// Batches are copied to device slots, and converted on the way where that is asked for.
class CopyOutlet final : public Outlet {
 public:
  CopyOutlet(std::shared_ptr<Road> road, Device& device, std::unique_ptr<Upload> upload,
             std::size_t slots, std::size_t slot_bytes);

  void pass_on(HostSlot& host, std::size_t micro_batch) override;
  Clock::time_point look() override;
  bool wait_until_left(HostSlot& host, std::chrono::nanoseconds timeout) override;
  bool drain(Clock::time_point deadline) noexcept override { return upload_->drain(deadline); }
  std::size_t staging_bytes() const override { return upload_->staging_bytes(); }

 private:
  const std::unique_ptr<Upload> upload_;
  /// Of the batch under way.
  Lease* lease_ = nullptr;
  std::vector<RunMeter::StreamWork> conversions_;
};

}  // namespace millrace
