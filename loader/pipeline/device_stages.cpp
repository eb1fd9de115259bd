// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_stages.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/image_stages.h"
#include "pipeline/checked_device.h"

namespace millrace {
namespace {

/// Returns the parameters that all conversions of the field share.
ConversionWork work_of(const Shape& shape, const Conversion& conversion) {
  const std::size_t channels = shape.rank() - 1;  // the axis of the channels
  return {.height = shape[channels - 2],
          .width = shape[channels - 1],
          .channels = shape[channels],
          .dtype = conversion.dtype,
          .layout = conversion.layout,
          .mean = conversion.mean,
          .std = conversion.std};
}

}  // namespace

DeviceStages::DeviceStages(Device& device, const SlotLayout& host, const BatchFields& fields,
                           const std::optional<Conversion>& conversion, HostWorkers* workers)
    : host_(host), workers_(workers) {
  if (!fields.image()) return;
  field_ = *fields.image();
  const FieldSpec& field = host.spec().fields()[field_];
  stages_ = field.device_stages;
  own_ = stages_.size();
  const ImageFields images{fields.flip_field(), fields.erase_field(), fields.mix_field()};
  const ConversionWork work = work_of(field.shape, *conversion);
  if (auto mix = mix_stage(work, images)) stages_.push_back(std::move(mix));
  stages_.push_back(conversion_stage(work, images, field.shape.rank() == 4 ? field.shape[0] : 1));
  fields_.resize(host.spec().fields().size());
  if (own_ == 0) return;
  std::size_t samples = 0;
  for (std::size_t number = 0; number < host.micro_batches().count; ++number)
    samples =
        std::max(samples, host.micro_batches().samples_of(number, host.micro_batches().samples));
  const std::size_t bytes = host.piece(field_, 0, 1).bytes * samples;
  for (std::size_t n = 0; n < std::min(own_, results_.size()); ++n)
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
                          std::size_t count, std::byte* output) {
  for (std::size_t field = 0; field < fields_.size(); ++field)
    fields_[field] = base + host_.piece(field, first, count).offset;
  const std::size_t before = std::min(stage, own_);
  std::byte* const from =
      before == 0 ? base + host_.piece(field_, first, count).offset : result_of(before - 1);
  std::byte* to = stage < own_ ? result_of(stage) : from;
  if (stage + 1 == stages_.size()) to = output;
  const bool packed = stage == 0 && own_ > 0 && host_.packed_field() == field_;
  const std::byte* const offsets = packed ? host_.packed_offset(base, first) : nullptr;
  stages_[stage]->launch(
      stream, {.count = count,
               .from = from,
               .offsets = reinterpret_cast<const std::uint32_t*>(offsets),
               .to = to,
               .marks = stage == 0 ? reinterpret_cast<std::uint8_t*>(marks_.data()) : nullptr,
               .scratch = scratch_.data(),
               .fields = fields_,
               .workers = workers_});
}

void DeviceStages::begin(Stream& stream, std::byte* base, std::size_t first, std::size_t count) {
  if (marks() && !has_zeros_) {
    // The host memory still contains zeros: the stream writes marks to it only later.
    stream.copy(zeros_.data(), host_marks_.data(), zeros_.bytes());
    has_zeros_ = true;
  }
  if (marks()) stream.copy_on_device(marks_.data(), zeros_.data(), count);
  launch(0, stream, base, first, count, nullptr);
  if (!marks()) return;
  stream.copy_to_host(host_marks_.data(), marks_.data(), count);
  stream.record(*marked_);
}

void DeviceStages::replace(Stream& stream, std::size_t number, const std::byte* result) {
  const std::size_t bytes = host_.piece(field_, 0, 1).bytes;
  stream.copy(result_of(0) + number * bytes, result, bytes);
  record_replaced(stream);
}

}  // namespace millrace
