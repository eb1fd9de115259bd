// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/sample_spec.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace millrace {

/// How a slot's samples are dealt to micro-batches: in order, and as evenly as can be.
struct MicroBatches {
  std::size_t samples;
  std::size_t count;

  /// The first sample of a micro-batch; of `count`, the samples.
  std::size_t begin(std::size_t micro_batch) const { return samples * micro_batch / count; }
  /// The samples of a micro-batch that a batch of `size` samples has.
  std::size_t samples_of(std::size_t micro_batch, std::size_t size) const {
    return std::min(begin(micro_batch + 1), size) - std::min(begin(micro_batch), size);
  }
  /// How many micro-batches a batch of `size` samples has samples for.
  std::size_t filled(std::size_t size) const { return size == 0 ? 0 : of(size - 1) + 1; }
  /// The micro-batch of a sample.
  std::size_t of(std::size_t sample) const;
};

/// Where the fields of a batch lie in a slot: micro-batch after micro-batch, and in each the fields
/// one after the other, [samples, ...] and dense. So a micro-batch is one piece to copy, and in a
/// slot of one micro-batch a batch's field is one tensor.
class SlotLayout {
 public:
  /// A piece of a slot, in bytes from its start.
  struct Piece {
    std::size_t offset;
    std::size_t bytes;
  };

  SlotLayout(SampleSpec spec, MicroBatches micro_batches);

  const SampleSpec& spec() const { return spec_; }
  const MicroBatches& micro_batches() const { return micro_batches_; }
  /// Bytes of a slot.
  std::size_t bytes() const { return bytes_; }
  /// Samples [first, first + count) of a field of the slot at `base`, which lie in one micro-batch.
  Tensor field(std::byte* base, std::size_t field, std::size_t first, std::size_t count) const;
  /// One sample's place in a field of the slot at `base`.
  Tensor sample(std::byte* base, std::size_t field, std::size_t sample) const;
  /// The same, without its shape.
  std::byte* place(std::byte* base, std::size_t field, std::size_t sample) const {
    return base + piece(field, sample, 1).offset;
  }
  /// Samples [first, first + count) of a field, which lie in one micro-batch.
  Piece piece(std::size_t field, std::size_t first, std::size_t count) const;
  /// All fields of the first `count` samples of a micro-batch. Between the fields of one that is
  /// not full lies what was there before.
  Piece micro_batch(std::size_t number, std::size_t count) const;

 private:
  SampleSpec spec_;
  MicroBatches micro_batches_;
  /// Of one sample, per field.
  std::vector<std::size_t> sample_bytes_;
  /// Per micro-batch, and in each per field.
  std::vector<std::size_t> offsets_;
  std::size_t bytes_ = 0;
};

}  // namespace millrace
