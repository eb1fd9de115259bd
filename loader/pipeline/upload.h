// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/pipeline.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/batch_fields.h"
#include "pipeline/device_stages.h"
#include "pipeline/slots/run_meter.h"
#include "pipeline/slots/slot_layout.h"
#include "pipeline/slots/slots.h"

namespace millrace {

/// Copies finished micro-batches to their slot on the device, one copy each. If host slots and
/// device slots have the same layout, the copy goes straight to the device slot (waits in
/// brackets):
///
///     copy stream:     [done of the slot's last batch] copy
///
/// Otherwise the copy goes to one of two staging slots, which have the host slot's layout. A second
/// stream converts from there into the device slot:
///
///     copy stream:     [converted, of the staging slot's last batch] copy ------.
///     convert stream:                            [copy] [done of the slot's last batch] convert
///
/// So neither a slow conversion nor a busy device delays the next batch's copy. The convert stream
/// copies the other fields, then runs the stages of the converted field (`DeviceStages`). If that
/// field has stages of its own, the first one runs before the wait for the device slot. Only
/// `drain` and the methods with a timeout wait for the device. One thread at a time may call it.
class Upload {
 public:
  /// Allocates the staging slots if they are needed. `hosts` is the number of host slots. If the
  /// device is the host, `workers` help with conversions. With `each_stage` every stage is timed by
  /// itself, which takes one more event for each. Otherwise the time of "convert" includes all work
  /// after the wait for the device slot.
  Upload(std::shared_ptr<Device> device, const SlotLayout& host, const SlotLayout& batch,
         const BatchFields& fields, const std::optional<Conversion>& conversion, std::size_t hosts,
         std::shared_ptr<HostWorkers> workers = nullptr, bool each_stage = false);

  /// Whether batches go through staging slots.
  bool staged() const { return convert_stream_ != nullptr; }
  std::size_t staging_bytes() const;
  /// Names of the timed stages on the convert stream, in their order.
  const std::vector<std::string>& timed() const { return timed_; }

  /// Enqueues the copy of a micro-batch into its staging slot, and the field's first own stage if
  /// it has one. Neither needs a device slot. Call it only if `staged()`. Returns the number of
  /// bytes copied.
  std::size_t copy(HostSlot& host, std::size_t micro_batch);
  /// Whether the first device stage marks samples that it cannot make. If so, call `wait_for_marks`
  /// after `copy`, and `replace` for each marked sample.
  bool marks() const { return stages_.marks(); }
  bool wait_for_marks(std::chrono::nanoseconds timeout) const {
    return stages_.wait_for_marks(timeout);
  }
  /// Returns the marks: one value per sample of the micro-batch, 0 for samples that are not marked.
  std::span<const std::uint8_t> marked(const HostSlot& host, std::size_t micro_batch) const;
  /// Enqueues a copy of `result` to the device, as the first stage's result for sample `number` of
  /// the micro-batch.
  void replace(std::size_t number, const std::byte* result) {
    stages_.replace(*convert_stream_, number, result);
  }
  /// Enqueues another copy of the micro-batch without its packed field into the staging slot.
  void copy_others(HostSlot& host, std::size_t micro_batch);
  /// Waits for the copies of `replace` and `copy_others`. Returns false at the timeout.
  bool wait_for_replaced(std::chrono::nanoseconds timeout) const {
    return stages_.wait_for_replaced(timeout);
  }
  /// Enqueues the work on a micro-batch that `copy` did not enqueue. Returns the number of bytes
  /// copied from the host. Call it for micro-batches in order.
  std::size_t deliver(HostSlot& host, OutputSlot& output, std::size_t micro_batch);

  /// Appends the times of stages and conversions that have ended since the last call.
  void take_conversions(std::vector<RunMeter::StreamWork>& into);
  /// Whether some conversions have not been returned by `take_conversions`.
  bool converting() const { return oldest_round_ < next_round_; }

  /// Waits for all enqueued work. Returns false if some work has not ended by `deadline`.
  bool drain(std::chrono::steady_clock::time_point deadline) noexcept;

 private:
  struct StagingSlot {
    Memory memory;
    /// Recorded after the conversion of the last batch in the slot.
    std::unique_ptr<Event> converted;
  };
  /// Events that time the convert stream's work on one batch.
  struct Round {
    struct MicroBatch {
      /// Recorded before and after the stage that needs no device slot; null without such a stage.
      std::unique_ptr<Event> early_begin{};
      std::unique_ptr<Event> early_end{};
      /// Recorded at the beginning of each other timed stage, and at the end of the last one.
      std::vector<std::unique_ptr<Event>> points{};
    };
    std::uint64_t batch = 0;
    /// Recorded after the copy of the batch's first micro-batch. From then on the convert stream
    /// waits for the device slot.
    std::unique_ptr<Event> arrived;
    std::vector<MicroBatch> micro_batches;
  };

  Round& round() { return rounds_[next_round_ % rounds_.size()]; }
  StagingSlot& staging() { return staging_[next_round_ % staging_.size()]; }
  SlotLayout::Piece piece_of(const HostSlot& host, std::size_t micro_batch) const;
  void make_room_for_round(std::size_t micro_batch);
  /// Whether each stage that needs a device slot is timed by itself.
  bool times_each() const { return timed_.size() > stages_.early() + 1; }
  void convert(HostSlot& host, OutputSlot& output, std::size_t micro_batch);
  void move_fields(std::byte* base, std::size_t first, std::size_t count);

  const std::shared_ptr<Device> device_;
  const SlotLayout host_;
  const SlotLayout batch_;
  const std::optional<std::size_t> image_;
  const std::shared_ptr<HostWorkers> workers_;
  std::array<StagingSlot, 2> staging_;
  DeviceStages stages_;
  std::vector<std::string> timed_;
  /// One element more than there are conversions whose end the host may not know yet. A batch's
  /// host slot is free again only when the copy out of it has ended. That copy begins after the
  /// conversion of the batch two before it.
  std::vector<Round> rounds_;
  std::uint64_t next_round_ = 0;
  std::uint64_t oldest_round_ = 0;
  // Declared last, so destroyed first: their queued work uses the memory above. A CUDA stream's
  // destructor does not wait for its work; `drain` has done so before.
  std::unique_ptr<Stream> copy_stream_;
  std::unique_ptr<Stream> convert_stream_;
};

}  // namespace millrace
