// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_stages.h"

#include <algorithm>

#include "pipeline/checked_device.h"

namespace millrace {

DeviceStages::DeviceStages(Device& device, const SlotLayout& host,
                           const std::optional<std::size_t>& field, HostWorkers* workers)
    : host_(host), workers_(workers) {
  if (!field) return;
  field_ = *field;
  stages_ = host.spec().fields()[field_].device_stages;
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
}

std::size_t DeviceStages::bytes() const {
  return results_[0].bytes() + results_[1].bytes() + scratch_.bytes();
}

std::byte* DeviceStages::run(Stream& stream, std::byte* base, std::size_t first,
                             std::size_t count) {
  if (stages_.empty()) return base + host_.piece(field_, first, count).offset;
  for (std::size_t field = 0; field < fields_.size(); ++field)
    fields_[field] = base + host_.piece(field, first, count).offset;
  const std::byte* from = fields_[field_];
  std::byte* to = nullptr;
  for (std::size_t n = 0; n < stages_.size(); ++n, from = to) {
    to = results_[n % results_.size()].data();
    stages_[n]->launch(stream, {.count = count,
                                .from = from,
                                .to = to,
                                .scratch = scratch_.data(),
                                .fields = fields_,
                                .workers = workers_});
  }
  return to;
}

}  // namespace millrace
