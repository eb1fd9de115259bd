// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slots/slot_layout.h"

#include <millrace/device_stage.h>

#include <cstdint>

#include "pipeline/slots/packed_room.h"

namespace millrace {
namespace {

/// Alignment of fields: that of cudaMalloc, and enough for vector loads.
constexpr std::size_t alignment = 256;

}  // namespace

std::size_t MicroBatches::of(std::size_t sample) const {
  std::size_t number = sample * count / samples;
  while (begin(number + 1) <= sample) ++number;
  return number;
}

SlotLayout::SlotLayout(SampleSpec spec, MicroBatches micro_batches)
    : spec_(std::move(spec)), micro_batches_(micro_batches) {
  for (std::size_t field = 0; field < spec_.fields().size(); ++field) {
    const FieldSpec& of = spec_.fields()[field];
    sample_bytes_.push_back(of.shape.elements() * size_of(of.dtype));
    if (!of.device_stages.empty() && of.device_stages.front()->packed()) packed_ = field;
  }
  for (std::size_t number = 0; number < micro_batches_.count; ++number) {
    const std::size_t samples = micro_batches_.samples_of(number, micro_batches_.samples);
    begins_.push_back(bytes_);
    const auto take = [&](std::size_t of_sample) {
      const std::size_t offset = bytes_;
      bytes_ += (of_sample * samples + alignment - 1) / alignment * alignment;
      return offset;
    };
    const std::size_t first = offsets_.size();
    for (std::size_t field = 0; field < sample_bytes_.size(); ++field)
      offsets_.push_back(field == packed_ ? 0 : take(sample_bytes_[field]));
    if (!packed_) continue;
    tables_.push_back(take(sizeof(std::uint32_t)));
    offsets_[first + *packed_] = take(packed_bytes(sample_bytes_[*packed_]));
  }
}

std::byte* SlotLayout::packed_room(std::byte* base, std::size_t sample) const {
  return base + offsets_[micro_batches_.of(sample) * sample_bytes_.size() + *packed_];
}

std::byte* SlotLayout::packed_offset(std::byte* base, std::size_t sample) const {
  const std::size_t number = micro_batches_.of(sample);
  return base + tables_[number] + (sample - micro_batches_.begin(number)) * sizeof(std::uint32_t);
}

SlotLayout::Piece SlotLayout::piece(std::size_t field, std::size_t first, std::size_t count) const {
  // This is called for each field of each sample, so it avoids the slow division.
  if (micro_batches_.count == 1 || count == 0)
    return {offsets_[field] + first * sample_bytes_[field], count * sample_bytes_[field]};
  const std::size_t number = micro_batches_.of(first);
  return {offsets_[number * sample_bytes_.size() + field] +
              (first - micro_batches_.begin(number)) * sample_bytes_[field],
          count * sample_bytes_[field]};
}

SlotLayout::Piece SlotLayout::micro_batch(std::size_t number, std::size_t count,
                                          std::size_t packed_bytes) const {
  if (count == 0) return {0, 0};
  const Piece last =
      piece(packed_.value_or(sample_bytes_.size() - 1), micro_batches_.begin(number), count);
  return {begins_[number], last.offset + (packed_ ? packed_bytes : last.bytes) - begins_[number]};
}

Tensor SlotLayout::field(std::byte* base, std::size_t field, std::size_t first,
                         std::size_t count) const {
  const FieldSpec& spec = spec_.fields().at(field);
  return {base + piece(field, first, count).offset, spec.dtype, spec.shape.with_outer(count)};
}

Tensor SlotLayout::sample(std::byte* base, std::size_t field, std::size_t sample) const {
  const FieldSpec& spec = spec_.fields()[field];
  return {place(base, field, sample), spec.dtype, spec.shape};
}

}  // namespace millrace
