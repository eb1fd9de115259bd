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

/// The trainer's side of the slot queues: hands batches out, makes streams wait for them, takes
/// them back. The pipeline and live batches share ownership; it may outlive the pipeline. All
/// methods may be called from any thread at once.
class Desk : public std::enable_shared_from_this<Desk> {
 public:
  /// `identity` is the run's state without its position.
  Desk(std::shared_ptr<Road> road, std::shared_ptr<Device> device, SlotLayout layout,
       State identity);

  Batch next(const NextRequest& request);

  DeviceId device() const { return device_->id(); }
  const SlotLayout& layout() const { return layout_; }
  const MicroBatches& micro_batches() const { return road_->micro_batches(); }
  std::size_t filled(const Lease& lease) const { return micro_batches().filled(lease.plan.size); }
  /// Returns the run's state at a position.
  State state_at(std::uint64_t position) const;
  /// Makes the batch's stream wait for a micro-batch. Without a stream, waits itself.
  void take(Lease& lease, std::size_t micro_batch);
  void record_stream(Lease& lease, Stream& stream);
  /// Shares ownership of a stream that the batch is used on, until the output slot is released.
  void keep(Lease& lease, std::shared_ptr<Stream> stream) { road_->keep(lease, std::move(stream)); }
  /// Gives the slot back. In a child of fork() leaks everything instead.
  void release(Lease& lease) noexcept;

 private:
  void reach(Lease& lease, std::size_t micro_batch);
  void use_on(Lease& lease, Stream& stream);
  /// Throws `Error` (`invalid_argument`), without ending the run, if `stream` is being captured.
  /// Accepts null.
  void refuse_capture(Stream* stream, const char* call);

  const std::shared_ptr<Road> road_;
  const std::shared_ptr<Device> device_;
  const SlotLayout layout_;
  const State identity_;
  const OwnerProcess process_;
};

}  // namespace millrace
