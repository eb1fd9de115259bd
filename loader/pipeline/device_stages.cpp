// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_stages.h"

#include <algorithm>
#include <cstring>

#include "pipeline/checked_device.h"

namespace millrace {

DeviceStages::DeviceStages(Device& device, const SlotLayout& host,
                           const std::optional<std::size_t>& field, HostWorkers* workers)
    : host_(host), workers_(workers) {
  if (!field) return;
  field_ = *field;
  stages_ = host.spec().fields()[field_].device_stages;
  if (stages_.empty()) return;
  fields_.resize(host.spec().fields().size());
  std::size_t samples = 0;
  for (std::size_t number = 0; number < host.micro_batches().count; ++number)
    samples =
        std::max(samples, host.micro_batches().samples_of(number, host.micro_batches().samples));
  const std::size_t bytes = host.piece(field_, 0, 1).bytes * samples;
  for (std::size_t n = 0; n < std::min(stages_.size(), results_.size()); ++n)
    results_[n] = checked_device_memory(device, bytes);
  std::size_t scratch = 0;
  for (const auto& stage : stages_) scratch = std::max(scratch, stage->scratch_bytes(samples));
  if (scratch > 0) scratch_ = checked_device_memory(device, scratch);
  if (host.packed_field() != field_ || !stages_.front()->packed()) return;
  marks_ = checked_device_memory(device, samples);
  zeros_ = checked_device_memory(device, samples);
  host_marks_ = checked(device.allocate_host(samples, {}), samples, device, "allocate_host()");
  marked_ = checked_event(device);
  replaced_ = checked_event(device);
  std::memset(host_marks_.data(), 0, samples);
}

std::size_t DeviceStages::bytes() const {
  std::size_t bytes = 0;
  for (const Memory* memory : {&results_[0], &results_[1], &scratch_, &marks_, &zeros_})
    bytes += memory->bytes();
  return bytes;
}

void DeviceStages::launch(std::size_t stage, Stream& stream, std::byte* base, std::size_t first,
                          std::size_t count, const std::byte* from) {
  for (std::size_t field = 0; field < fields_.size(); ++field)
    fields_[field] = base + host_.piece(field, first, count).offset;
  const bool packed = stage == 0 && host_.packed_field() == field_;
  const std::byte* const offsets = packed ? host_.packed_offset(base, first) : nullptr;
  stages_[stage]->launch(
      stream, {.count = count,
               .from = from,
               .offsets = reinterpret_cast<const std::uint32_t*>(offsets),
               .to = result_of(stage),
               .marks = stage == 0 ? reinterpret_cast<std::uint8_t*>(marks_.data()) : nullptr,
               .scratch = scratch_.data(),
               .fields = fields_,
               .workers = workers_});
}

void DeviceStages::begin(Stream& stream, std::byte* base, std::size_t first, std::size_t count) {
  if (marks() && !has_zeros_) {
    // The stream writes marks to this host memory only later.
    stream.copy(zeros_.data(), host_marks_.data(), zeros_.bytes());
    has_zeros_ = true;
  }
  if (marks()) stream.copy_on_device(marks_.data(), zeros_.data(), count);
  launch(0, stream, base, first, count, base + host_.piece(field_, first, count).offset);
  if (!marks()) return;
  stream.copy_to_host(host_marks_.data(), marks_.data(), count);
  stream.record(*marked_);
}

void DeviceStages::replace(Stream& stream, std::size_t number, const std::byte* result) {
  const std::size_t bytes = host_.piece(field_, 0, 1).bytes;
  stream.copy(result_of(0) + number * bytes, result, bytes);
  record_replaced(stream);
}

std::byte* DeviceStages::finish(Stream& stream, std::byte* base, std::size_t first,
                                std::size_t count) {
  if (stages_.empty()) return base + host_.piece(field_, first, count).offset;
  for (std::size_t stage = 1; stage < stages_.size(); ++stage)
    launch(stage, stream, base, first, count, result_of(stage - 1));
  return result_of(stages_.size() - 1);
}

}  // namespace millrace
