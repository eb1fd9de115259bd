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

/// Values that lie in one file: value n begins at `begin` + n x `stride`.
struct ArrayPiece {
  std::shared_ptr<const ArrayFile> file;
  std::uint64_t begin = 0;
  std::uint64_t stride = 0;
  std::uint64_t values = 0;
};

/// Values of one dtype and shape that are numbered by their first axis, in one file or several, one
/// after the other. All of them lie within their files.
struct StoredArray {
  DType dtype = DType::uint8;
  /// Of one value, without the axis that numbers them.
  Shape shape{};
  /// Of one value, at least 1.
  std::uint64_t bytes = 0;
  std::vector<ArrayPiece> pieces{};

  std::uint64_t values() const;
  /// Where value `number` (< `values()`) lies.
  ByteRange locate(std::uint64_t number, const ArrayFile*& file) const;
  /// Whether the values of each piece lie one behind the other without a gap.
  bool is_dense() const;
};

/// How raw files are cut into values.
struct RawLayout {
  std::uint64_t header_bytes = 0;
  /// From one value to the next; nullopt = as many as a value has.
  std::optional<std::uint64_t> record_bytes{};
  /// Of a value in its record.
  std::uint64_t offset = 0;
  DType dtype = DType::uint8;
  std::vector<std::uint64_t> extents{};
};

/// The longest value, as of a sample's field.
inline constexpr std::uint64_t most_value_bytes = std::uint64_t{1} << 40U;

/// The array of a .npy file. Throws `Error`, naming the file: `corrupt` for what is no sound .npy
/// file, is cut short, or has an array that is not read (`parse_npy_header`, scalars, empty records
/// and more extents than a batch has room for); `io`.
StoredArray npy_array(std::shared_ptr<const ArrayFile> file);
/// The values of a raw file. Throws `Error` (`corrupt`, naming the file or what of the layout is
/// wrong).
StoredArray raw_array(std::shared_ptr<const ArrayFile> file, const RawLayout& layout);
/// Adds what `more` has behind `array`. Throws `Error` (`corrupt`) if that has another dtype or
/// shape.
void append(StoredArray& array, StoredArray more);

/// Single values as records of `length` of them that begin every `stride`: what is left at a
/// piece's end, which is less, is left out. Throws `Error` (`corrupt`) unless the values are single
/// ones that lie one behind the other, and if every piece is shorter than a window.
StoredArray windows_of(StoredArray array, std::uint64_t length, std::uint64_t stride);

}  // namespace millrace
