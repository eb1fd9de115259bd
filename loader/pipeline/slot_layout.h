// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/sample_spec.h>

#include <cstddef>
#include <vector>

namespace millrace {

/// How a batch's samples are dealt to its parts: in order, and as evenly as can be.
struct Parts {
  std::size_t samples;
  std::size_t count;

  /// The first sample of a part; of `count`, the samples.
  std::size_t begin(std::size_t part) const { return samples * part / count; }
  /// The part of a sample.
  std::size_t of(std::size_t sample) const;
};

/// Where the fields of a batch lie in a slot: part after part, and in each the fields one after the
/// other, [samples, ...] and dense. So a part is one piece to copy, and in a slot of one part a
/// batch's field is one tensor.
class SlotLayout {
 public:
  /// A piece of a slot, in bytes from its start.
  struct Piece {
    std::size_t offset;
    std::size_t bytes;
  };

  SlotLayout(SampleSpec spec, Parts parts);

  const SampleSpec& spec() const { return spec_; }
  const Parts& parts() const { return parts_; }
  /// Bytes of a slot.
  std::size_t bytes() const { return bytes_; }
  /// Samples [first, first + count) of a field of the slot at `base`, which lie in one part.
  Tensor field(std::byte* base, std::size_t field, std::size_t first, std::size_t count) const;
  /// One sample's place in a field of the slot at `base`.
  Tensor sample(std::byte* base, std::size_t field, std::size_t sample) const;
  /// Samples [first, first + count) of a field, which lie in one part.
  Piece piece(std::size_t field, std::size_t first, std::size_t count) const;
  /// All fields of the first `count` samples of a part. Between the fields of a part that is not
  /// full lies what was there before.
  Piece part(std::size_t part, std::size_t count) const;

 private:
  SampleSpec spec_;
  Parts parts_;
  /// Of one sample, per field.
  std::vector<std::size_t> sample_bytes_;
  /// Per part, and in each per field.
  std::vector<std::size_t> offsets_;
  std::size_t bytes_ = 0;
};

}  // namespace millrace
