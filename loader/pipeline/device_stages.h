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

/// The stages of the converted field, in order, and their device memory: the field's own ones
/// (`FieldSpec::device_stages`), erasing and mixing in place, the conversion. One stream uses them,
/// for one micro-batch after the other: `begin`, and `wait_for_marks` and `replace` if they mark
/// samples; then `launch` for each stage from `early` on.
class DeviceStages {
 public:
  /// Allocates memory for the samples of a micro-batch of `host`. Without `conversion` the list is
  /// empty.
  DeviceStages(Device& device, const SlotLayout& host, const BatchFields& fields,
               const std::optional<Conversion>& conversion, HostWorkers* workers);

  std::size_t bytes() const;
  std::size_t size() const { return stages_.size(); }
  const char* name(std::size_t stage) const { return stages_[stage]->name(); }
  /// Number of stages that `begin` enqueues, as they need no device slot: the field's first own
  /// stage, if it has one.
  std::size_t early() const { return own_ > 0 ? 1 : 0; }
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
  /// Enqueues one stage. `output` is where the last one writes the field of the first sample.
  void launch(std::size_t stage, Stream& stream, std::byte* base, std::size_t first,
              std::size_t count, std::byte* output);

 private:
  /// Returns the result of one of the field's own stages.
  std::byte* result_of(std::size_t stage) { return results_[stage % results_.size()].data(); }

  const SlotLayout host_;
  HostWorkers* const workers_;
  std::size_t field_ = 0;
  std::vector<std::shared_ptr<const DeviceStage>> stages_;
  /// Number of the field's own stages, which come first.
  std::size_t own_ = 0;
  /// Results of even and odd stages of these.
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
