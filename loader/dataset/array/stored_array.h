// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataset/array/array_file.h"

namespace millrace {

/// Consecutive values in one file. Value n begins at byte `begin` + n x `stride`.
struct ArrayPiece {
  std::shared_ptr<const ArrayFile> file;
  std::uint64_t begin = 0;
  std::uint64_t stride = 0;
  std::uint64_t values = 0;
};

/// Values of one dtype and shape, numbered across one or several consecutive files. All values are
/// within their files.
struct StoredArray {
  DType dtype = DType::uint8;
  /// Shape of one value, without the axis that numbers the values.
  Shape shape{};
  /// Bytes of one value, at least 1.
  std::uint64_t bytes = 0;
  std::vector<ArrayPiece> pieces{};

  std::uint64_t values() const;
  /// Returns the byte range of value `number` (< `values()`), and its file in `file`.
  FileRange locate(std::uint64_t number, const ArrayFile*& file) const;
  /// Returns whether the values of each piece are adjacent, without gaps.
  bool is_dense() const;
};

/// Layout of the values in a raw file.
struct RawLayout {
  std::uint64_t header_bytes = 0;
  /// Bytes from one record to the next; nullopt = the bytes of one value.
  std::optional<std::uint64_t> record_bytes{};
  /// Offset of the value in its record.
  std::uint64_t offset = 0;
  DType dtype = DType::uint8;
  std::vector<std::uint64_t> extents{};
};

/// Largest number of bytes of one value; the same limit holds for a sample's field.
inline constexpr std::uint64_t max_value_bytes = std::uint64_t{1} << 40U;

/// Returns the array of a .npy file. Throws `Error`, naming the file: `corrupt` if the file is
/// damaged, cut short or not a .npy file, or if its array is unsupported; `io`. Unsupported are
/// scalars, empty records, more extents than a batch supports, and arrays that `parse_npy_header`
/// refuses.
StoredArray npy_array(std::shared_ptr<const ArrayFile> file);
/// Returns the values of a raw file. Throws `Error` (`corrupt`, naming the file or the wrong part
/// of the layout).
StoredArray raw_array(std::shared_ptr<const ArrayFile> file, const RawLayout& layout);
/// Appends the values of `more` to `array`. Throws `Error` (`corrupt`) if `more` has another dtype
/// or shape.
void append(StoredArray& array, StoredArray more);

/// Groups single values into records of `length` values; a record begins every `stride` values. A
/// shorter rest at the end of a piece is left out. Throws `Error` (`corrupt`) if the values are not
/// scalars, if there are gaps between them, or if every piece is shorter than one window.
StoredArray windows_of(StoredArray array, std::uint64_t length, std::uint64_t stride);

}  // namespace millrace
