// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/pipeline.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/owner_process.h"
#include "pipeline/road/road.h"
#include "pipeline/road/slot_layout.h"

namespace millrace {

/// The trainer's side of the road: hands batches out, makes streams wait for them, takes them back.
/// Held by the pipeline and by live batches, which it may outlive. All methods may be called from
/// any thread at once.
class Desk : public std::enable_shared_from_this<Desk> {
 public:
  /// `identity` is the run's state but for its position.
  Desk(std::shared_ptr<Road> road, std::shared_ptr<Device> device, SlotLayout layout,
       State identity);

  Batch next(const NextRequest& request);

  DeviceId device() const { return device_->id(); }
  const SlotLayout& layout() const { return layout_; }
  const MicroBatches& micro_batches() const { return road_->micro_batches(); }
  std::size_t filled(const Lease& lease) const { return micro_batches().filled(lease.plan.size); }
  /// The run's state at a position of it.
  State state_at(std::uint64_t position) const;
  /// Makes the batch's stream wait for a micro-batch, or without a stream waits for it.
  void take(Lease& lease, std::size_t micro_batch);
  void record_stream(Lease& lease, Stream& stream);
  /// Until the lease is released the road owns a share of a stream that it is used on.
  void keep(Lease& lease, std::shared_ptr<Stream> stream) { road_->keep(lease, std::move(stream)); }
  /// In a child of fork() that keeps all as it is, for good.
  void release(Lease& lease) noexcept;

 private:
  void reach(Lease& lease, std::size_t micro_batch);
  void use_on(Lease& lease, Stream& stream);
  /// Throws, without ending the run, if `stream` is being captured; null is not.
  void refuse_capture(Stream* stream, const char* call);

  const std::shared_ptr<Road> road_;
  const std::shared_ptr<Device> device_;
  const SlotLayout layout_;
  const State identity_;
  const OwnerProcess process_;
};

}  // namespace millrace
