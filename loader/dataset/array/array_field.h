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

/// Memory layout of an image's pixels: colour planes one after the other, interleaved colours, or
/// one value a pixel.
enum class PixelOrder : std::uint8_t { chw, hwc, grey };

/// A byte range and the file it was read from.
using ReadRange = std::pair<const ArrayFile*, FileRange>;

/// One field of an array dataset. Immutable; all methods may be called by several threads at the
/// same time.
class ArrayField {
 public:
  /// Scratch memory of one thread for one field.
  struct Buffers {
    std::vector<std::byte> offsets;
    std::vector<std::byte> stored;
    std::vector<std::byte> made;
  };

  /// Makes a field in which record n has value n.
  ArrayField(std::string name, StoredArray array);

  // Each of these throws `Error` (`corrupt`, a clause about the field) if the values do not fit.

  /// Makes the length vary: record n has the values from offsets[n] up to, not including, offsets[n
  /// + 1]. `max_length` is the caller's upper limit for the number of values per record; 0 =
  /// unknown.
  void vary_by(StoredArray offsets, std::uint64_t max_length);
  /// Converts the values, which are integers, to int64.
  void widen();
  /// Wraps the values, which are an image's pixels, as a binary PPM or PGM file. Source: Netpbm,
  /// "PPM Format Specification" and "PGM Format Specification".
  void encode(PixelOrder order);

  const FieldSpec& spec() const { return spec_; }
  std::uint64_t records() const;

  /// Returns the field of record `record` (< `records()`), a view of the map or of `buffers`, valid
  /// until the next call. Appends the ranges that were read to `ranges`. Throws `Error`:
  /// `bad_record` for offsets outside the values or in descending order, `io`.
  std::span<const std::byte> read(std::uint64_t record, Buffers& buffers,
                                  std::vector<ReadRange>& ranges) const;
  /// Returns the byte range of the values of record `record`. Appends the offsets that were read
  /// for that to `ranges`. Throws the same errors as `read`.
  ReadRange locate(std::uint64_t record, std::vector<std::byte>& buffer,
                   std::vector<ReadRange>& ranges) const;

  const StoredArray& array() const { return array_; }
  const std::optional<StoredArray>& offsets() const { return offsets_; }

 private:
  FieldSpec spec_;
  StoredArray array_;
  std::optional<StoredArray> offsets_;
  bool widens_ = false;
  /// The image's PPM or PGM header; empty unless the field is an image.
  std::string image_header_;
  /// Number of colour planes to interleave; 1 = nothing to interleave.
  std::uint64_t planes_ = 1;
};

}  // namespace millrace
