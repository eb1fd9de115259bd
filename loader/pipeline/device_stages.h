// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device_stage.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/batch_fields.h"
#include "pipeline/slots/slot_layout.h"

namespace millrace {

/// The device stages of the converted field, with their device memory: the field's own stages
/// (`FieldSpec::device_stages`), erasing and mixing in place, the conversion. One stream runs them
/// in this order, for one micro-batch after the other. For each micro-batch call `begin` if
/// `early()` is 1. If `marks()`, also call `wait_for_marks` and `replace`. Then call `launch` for
/// each stage from number `early()` on.
class DeviceStages {
 public:
  /// Allocates memory for the largest micro-batch of `host`. Without `conversion` the list of
  /// stages is empty.
  DeviceStages(Device& device, const SlotLayout& host, const BatchFields& fields,
               const std::optional<Conversion>& conversion, HostWorkers* workers);

  std::size_t bytes() const;
  std::size_t size() const { return stages_.size(); }
  const char* name(std::size_t stage) const { return stages_[stage]->name(); }
  /// Number of stages that `begin` enqueues before the batch has a device slot: 1 if the field has
  /// stages of its own, else 0.
  std::size_t early() const { return own_ > 0 ? 1 : 0; }
  /// Whether the first stage marks samples that it cannot make.
  bool marks() const { return marks_.data() != nullptr; }

  /// Enqueues the first stage for samples [first, first + count) of the staging slot at `base`.
  void begin(Stream& stream, std::byte* base, std::size_t first, std::size_t count);
  /// Waits until the marks of the last `begin` are on the host. Returns false at the timeout.
  bool wait_for_marks(std::chrono::nanoseconds timeout) const { return marked_->wait(timeout); }
  /// Marks of the micro-batch, one value per sample. Valid after `wait_for_marks`.
  std::span<const std::uint8_t> marked(std::size_t count) const {
    return {reinterpret_cast<const std::uint8_t*>(host_marks_.data()), count};
  }
  /// Enqueues a copy of `result` to the device, in place of the first stage's result for sample
  /// `number` of the micro-batch.
  void replace(Stream& stream, std::size_t number, const std::byte* result);
  /// Records the event that `wait_for_replaced` waits for.
  void record_replaced(Stream& stream) { stream.record(*replaced_); }
  bool wait_for_replaced(std::chrono::nanoseconds timeout) const {
    return replaced_->wait(timeout);
  }
  /// Enqueues one stage for the same samples as `begin`. The last stage writes its result to
  /// `output`, the address of the first sample's field.
  void launch(std::size_t stage, Stream& stream, std::byte* base, std::size_t first,
              std::size_t count, std::byte* output);

 private:
  /// Returns the memory for the result of one of the field's own stages.
  std::byte* result_of(std::size_t stage) { return results_[stage % results_.size()].data(); }

  const SlotLayout host_;
  HostWorkers* const workers_;
  std::size_t field_ = 0;
  std::vector<std::shared_ptr<const DeviceStage>> stages_;
  /// Number of the field's own stages, which come first.
  std::size_t own_ = 0;
  /// Results of the own stages with even numbers, and of those with odd numbers.
  std::array<Memory, 2> results_;
  Memory scratch_;
  /// One byte per sample: the marks, and the zeros that reset the marks for each micro-batch.
  Memory marks_;
  Memory zeros_;
  bool has_zeros_ = false;
  Memory host_marks_;
  /// Recorded after the copy to `host_marks_`.
  std::unique_ptr<Event> marked_;
  /// Recorded after the last copy that replaces a result.
  std::unique_ptr<Event> replaced_;
  std::vector<const std::byte*> fields_;
};

}  // namespace millrace
