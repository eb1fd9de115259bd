// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/sample_spec.h>

#include <cstddef>
#include <vector>

namespace millrace {

/// Where the fields of a batch lie in a slot: one after the other, each [batch size, ...] and dense, so that a batch's field is one
/// tensor however many parts it is copied in. A whole slot is copied at once; a part of one is a copy per field, never per
/// sample.
class SlotLayout {
 public:
  /// A piece of a slot, in bytes from its start.
  struct Piece {
    std::size_t offset;
    std::size_t bytes;
  };

  SlotLayout(const SampleSpec& spec, std::size_t batch_size);

  /// Bytes of a slot.
  std::size_t bytes() const { return bytes_; }
  std::size_t batch_size() const { return batch_size_; }
  /// Samples [first, first + count) of a field of the slot at `base`.
  Tensor field(std::byte* base, std::size_t field, std::size_t first, std::size_t count) const;
  /// One sample's place in a field of the slot at `base`.
  Tensor sample(std::byte* base, std::size_t field, std::size_t sample) const;
  /// What must be copied for samples [first, first + count).
  std::vector<Piece> pieces(std::size_t first, std::size_t count) const;

 private:
  struct Field {
    DType dtype;
    Shape shape;
    std::size_t offset;
    std::size_t bytes_per_sample;
  };
  std::vector<Field> fields_;
  std::size_t batch_size_;
  std::size_t bytes_ = 0;
};

}  // namespace millrace
