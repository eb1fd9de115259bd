// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/pipeline.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/owner_process.h"
#include "pipeline/planning/run_sampler.h"
#include "pipeline/slots/slot_layout.h"
#include "pipeline/slots/slot_queues.h"

namespace millrace {

/// The trainer's side of the slot queues: hands out batches, makes streams wait for a batch's data,
/// and takes batches back. The pipeline and its live batches share ownership of it, so it may
/// outlive the pipeline. All methods may be called by several threads at the same time.
class BatchConsumer : public std::enable_shared_from_this<BatchConsumer> {
 public:
  /// `identity` is the run's state. Its position and its order are ignored.
  BatchConsumer(std::shared_ptr<SlotQueues> queues, std::shared_ptr<Device> device,
                SlotLayout layout, State identity, std::shared_ptr<const OrderHashes> order);

  Batch next(const NextRequest& request);

  DeviceId device() const { return device_->id(); }
  const SlotLayout& layout() const { return layout_; }
  const MicroBatches& micro_batches() const { return queues_->micro_batches(); }
  std::size_t filled(const OutputSlot& output) const {
    return micro_batches().filled(output.plan.size);
  }
  /// Returns the run's state at a position.
  State state_at(const RunPosition& at) const;
  /// Makes the batch's stream wait for a micro-batch. If the batch has no stream, the calling
  /// thread waits.
  void await_micro_batch(OutputSlot& output, std::size_t micro_batch);
  void record_stream(OutputSlot& output, Stream& stream);
  /// Keeps a stream that uses the batch alive until the output slot is released.
  void own_stream(OutputSlot& output, std::shared_ptr<Stream> stream) {
    queues_->own_stream(output, std::move(stream));
  }
  /// Returns the slot to the slot queues. In a child of fork() leaks this object instead.
  void release(OutputSlot& output) noexcept;

 private:
  void reach(OutputSlot& output, std::size_t micro_batch);
  void use_on(OutputSlot& output, Stream& stream);
  /// Throws `Error` (`invalid_argument`), without ending the run, if `stream` is being captured.
  /// Accepts null.
  void refuse_capture(Stream* stream, const char* call);

  const std::shared_ptr<SlotQueues> queues_;
  const std::shared_ptr<Device> device_;
  const SlotLayout layout_;
  const State identity_;
  const std::shared_ptr<const OrderHashes> order_;
  const OwnerProcess process_;
};

}  // namespace millrace
