// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/sample_spec.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataset/array/stored_array.h"

namespace millrace {

/// How the pixels of an image lie: colour planes one behind the other, colours side by side, or
/// one value for each pixel.
enum class PixelOrder : std::uint8_t { chw, hwc, grey };

/// What was read of which file for a record.
using ReadRange = std::pair<const ArrayFile*, ByteRange>;

/// One field of an array dataset. Immutable; all methods may be called from any thread at once.
class ArrayField {
 public:
  /// One thread's memory for a field.
  struct Buffers {
    std::vector<std::byte> offsets;
    std::vector<std::byte> stored;
    std::vector<std::byte> made;
  };

  /// Record n has value n.
  ArrayField(std::string name, StoredArray array);

  // Each of these throws `Error` (`corrupt`, a clause about the field) for what does not fit.

  /// Record n has the values from the one that `offsets` has at n up to the one that it has at n +
  /// 1. They have at most `max_length`, as the caller says; 0 = that is not known.
  void vary_by(StoredArray offsets, std::uint64_t max_length);
  /// The values are integers, and records have them as int64.
  void widen();
  /// The values are the pixels of an image, and records have it as a binary PPM or PGM file.
  /// Source: Netpbm, "PPM Format Specification" and "PGM Format Specification".
  void encode(PixelOrder order);

  const FieldSpec& spec() const { return spec_; }
  std::uint64_t records() const;

  /// The field of record `record` (< `records()`): in a map, or in `buffers` until the next call.
  /// Adds to `ranges` where it was read. Throws `Error`: `bad_record` for offsets that lead
  /// nowhere, `io`.
  std::span<const std::byte> read(std::uint64_t record, Buffers& buffers,
                                  std::vector<ReadRange>& ranges) const;
  /// Where the values of record `record` lie. Adds to `ranges` what was read to know that. Throws
  /// as `read` does.
  ReadRange locate(std::uint64_t record, std::vector<std::byte>& buffer,
                   std::vector<ReadRange>& ranges) const;

  const StoredArray& array() const { return array_; }
  const std::optional<StoredArray>& offsets() const { return offsets_; }

 private:
  FieldSpec spec_;
  StoredArray array_;
  std::optional<StoredArray> offsets_;
  bool widens_ = false;
  /// Of an image; empty if it is none.
  std::string image_header_;
  /// How many planes there are to be put side by side; 1 = none.
  std::uint64_t planes_ = 1;
};

}  // namespace millrace
