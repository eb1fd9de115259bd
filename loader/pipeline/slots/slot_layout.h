// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/sample_spec.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace millrace {

/// Division of a slot's samples into micro-batches: in order, and as evenly as possible.
struct MicroBatches {
  std::size_t samples;
  std::size_t count;

  /// Returns the first sample of a micro-batch. For `count` it returns the number of samples.
  std::size_t begin(std::size_t micro_batch) const { return samples * micro_batch / count; }
  /// Returns how many samples a micro-batch has in a batch of `size` samples.
  std::size_t samples_of(std::size_t micro_batch, std::size_t size) const {
    return std::min(begin(micro_batch + 1), size) - std::min(begin(micro_batch), size);
  }
  /// Returns how many micro-batches of a batch of `size` samples have samples.
  std::size_t filled(std::size_t size) const { return size == 0 ? 0 : of(size - 1) + 1; }
  /// Returns the micro-batch of a sample.
  std::size_t of(std::size_t sample) const;
};

/// Layout of a batch's fields in a slot. Micro-batches follow each other. Within a micro-batch the
/// fields follow each other, each a dense tensor [samples, ...]. So a micro-batch takes one copy.
/// In a slot with one micro-batch, each field of a batch is one tensor.
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
  /// Size of a slot in bytes.
  std::size_t bytes() const { return bytes_; }
  /// Returns samples [first, first + count) of a field of the slot at `base`. All must lie in one
  /// micro-batch.
  Tensor field(std::byte* base, std::size_t field, std::size_t first, std::size_t count) const;
  /// Returns one sample of a field of the slot at `base`.
  Tensor sample(std::byte* base, std::size_t field, std::size_t sample) const;
  /// Returns the address of one sample of a field.
  std::byte* place(std::byte* base, std::size_t field, std::size_t sample) const {
    return base + piece(field, sample, 1).offset;
  }
  /// Returns the piece with samples [first, first + count) of a field. All must lie in one
  /// micro-batch.
  Piece piece(std::size_t field, std::size_t first, std::size_t count) const;
  /// Returns the piece with all fields of the first `count` samples of a micro-batch. If the
  /// micro-batch is not full, the gaps between its fields hold old bytes. Of the packed field the
  /// piece includes `packed_bytes` bytes.
  Piece micro_batch(std::size_t number, std::size_t count, std::size_t packed_bytes) const;

  /// The field whose samples are packed (`DeviceStage::packed`); nullopt without such a field.
  /// In each micro-batch it follows the other fields and a table of u32 offsets.
  std::optional<std::size_t> packed_field() const { return packed_; }
  /// Returns the address of the packed field in the sample's micro-batch.
  std::byte* packed_room(std::byte* base, std::size_t sample) const;
  /// Returns the address of a sample's offset in that table.
  std::byte* packed_offset(std::byte* base, std::size_t sample) const;

 private:
  SampleSpec spec_;
  MicroBatches micro_batches_;
  /// Size of one sample in bytes, per field.
  std::vector<std::size_t> sample_bytes_;
  std::optional<std::size_t> packed_;
  /// Offsets of the fields, per micro-batch and field.
  std::vector<std::size_t> offsets_;
  /// Begin of each micro-batch, and of its table of offsets.
  std::vector<std::size_t> begins_;
  std::vector<std::size_t> tables_;
  std::size_t bytes_ = 0;
};

}  // namespace millrace
