// SPDX-License-Identifier: Apache-2.0
#include "slot_layout.h"

namespace millrace {
namespace {

/// What cudaMalloc gives and vector loads like.
constexpr std::size_t alignment = 256;

}  // namespace

SlotLayout::SlotLayout(const SampleSpec& spec, std::size_t batch_size) : batch_size_(batch_size) {
  for (const FieldSpec& field : spec.fields()) {
    const std::size_t bytes_per_sample = field.shape.elements() * size_of(field.dtype);
    fields_.push_back({field.dtype, field.shape, bytes_, bytes_per_sample});
    bytes_ += (bytes_per_sample * batch_size + alignment - 1) / alignment * alignment;
  }
}

Tensor SlotLayout::field(std::byte* base, std::size_t field, std::size_t first, std::size_t count) const {
  const Field& laid = fields_.at(field);
  return {base + laid.offset + first * laid.bytes_per_sample, laid.dtype, laid.shape.with_outer(count)};
}

Tensor SlotLayout::sample(std::byte* base, std::size_t field, std::size_t sample) const {
  const Field& laid = fields_[field];
  return {base + laid.offset + sample * laid.bytes_per_sample, laid.dtype, laid.shape};
}

std::vector<SlotLayout::Piece> SlotLayout::pieces(std::size_t first, std::size_t count) const {
  if (count == 0) return {};
  if (count == batch_size_) return {{0, bytes_}};
  std::vector<Piece> pieces;
  for (const Field& laid : fields_)
    pieces.push_back({laid.offset + first * laid.bytes_per_sample, count * laid.bytes_per_sample});
  return pieces;
}

}  // namespace millrace
