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

#include "pipeline/slots/slot_layout.h"

namespace millrace {

/// The stages of one field and their device memory. One stream uses them, for one micro-batch after
/// the other: `begin`, `wait_for_marks` and `replace` if they mark samples, `finish`.
class DeviceStages {
 public:
  /// Allocates memory for the samples of a micro-batch of `host`. `field` is the converted field,
  /// if the batch has one.
  DeviceStages(Device& device, const SlotLayout& host, const std::optional<std::size_t>& field,
               HostWorkers* workers);

  std::size_t bytes() const;
  bool empty() const { return stages_.empty(); }
  const char* first_name() const { return stages_.front()->name(); }
  /// Whether the first stage marks samples.
  bool marks() const { return marks_.data() != nullptr; }

  /// Enqueues the first stage for samples [first, first + count) of the staging slot at `base`.
  void begin(Stream& stream, std::byte* base, std::size_t first, std::size_t count);
  /// Waits until the marks of these samples are known. Returns false at the timeout.
  bool wait_for_marks(std::chrono::nanoseconds timeout) const { return marked_->wait(timeout); }
  /// The marks that were waited for: one value per sample of the micro-batch.
  std::span<const std::uint8_t> marked(std::size_t count) const {
    return {reinterpret_cast<const std::uint8_t*>(host_marks_.data()), count};
  }
  /// Enqueues a copy of the first stage's result for sample `number` of the micro-batch.
  void replace(Stream& stream, std::size_t number, const std::byte* result);
  /// Lets `wait_for_replaced` wait for the work so far.
  void record_replaced(Stream& stream) { stream.record(*replaced_); }
  bool wait_for_replaced(std::chrono::nanoseconds timeout) const {
    return replaced_->wait(timeout);
  }
  /// Enqueues the other stages. Returns the place of the field's first sample afterwards. A field
  /// without stages stays in the slot.
  std::byte* finish(Stream& stream, std::byte* base, std::size_t first, std::size_t count);

 private:
  void launch(std::size_t stage, Stream& stream, std::byte* base, std::size_t first,
              std::size_t count, const std::byte* from);
  std::byte* result_of(std::size_t stage) { return results_[stage % results_.size()].data(); }

  const SlotLayout host_;
  HostWorkers* const workers_;
  std::size_t field_ = 0;
  std::vector<std::shared_ptr<const DeviceStage>> stages_;
  /// Results of even and odd stages.
  std::array<Memory, 2> results_;
  Memory scratch_;
  /// One byte per sample: the marks, and zeros that are copied there first.
  Memory marks_;
  Memory zeros_;
  bool has_zeros_ = false;
  Memory host_marks_;
  /// Behind the copy to `host_marks_`.
  std::unique_ptr<Event> marked_;
  /// Behind the last copy that replaces something.
  std::unique_ptr<Event> replaced_;
  std::vector<const std::byte*> fields_;
};

}  // namespace millrace
