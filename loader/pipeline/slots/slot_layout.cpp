// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slots/slot_layout.h"

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
  for (const FieldSpec& field : spec_.fields())
    sample_bytes_.push_back(field.shape.elements() * size_of(field.dtype));
  for (std::size_t number = 0; number < micro_batches_.count; ++number)
    for (const std::size_t sample_bytes : sample_bytes_) {
      offsets_.push_back(bytes_);
      const std::size_t field_bytes =
          sample_bytes * micro_batches_.samples_of(number, micro_batches_.samples);
      bytes_ += (field_bytes + alignment - 1) / alignment * alignment;
    }
}

SlotLayout::Piece SlotLayout::piece(std::size_t field, std::size_t first, std::size_t count) const {
  // Each sample calls this for each of its fields, so it avoids the slow division.
  if (micro_batches_.count == 1 || count == 0)
    return {offsets_[field] + first * sample_bytes_[field], count * sample_bytes_[field]};
  const std::size_t number = micro_batches_.of(first);
  return {offsets_[number * sample_bytes_.size() + field] +
              (first - micro_batches_.begin(number)) * sample_bytes_[field],
          count * sample_bytes_[field]};
}

SlotLayout::Piece SlotLayout::micro_batch(std::size_t number, std::size_t count) const {
  if (count == 0) return {0, 0};
  const std::size_t first = micro_batches_.begin(number);
  const Piece last = piece(sample_bytes_.size() - 1, first, count);
  const std::size_t offset = piece(0, first, count).offset;
  return {offset, last.offset + last.bytes - offset};
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
