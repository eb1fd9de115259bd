// SPDX-License-Identifier: Apache-2.0
#include "dataset/array/stored_array.h"

#include <algorithm>
#include <utility>

#include "dataset/array/npy_header.h"

namespace millrace {
namespace {

[[noreturn]] void refuse_array(const std::string& what) { throw Error(ErrorCode::corrupt, what); }

std::string extents_text(std::span<const std::uint64_t> extents) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < extents.size(); ++axis)
    text += (axis > 0 ? ", " : "") + std::to_string(extents[axis]);
  return text + (extents.size() == 1 ? ",)" : ")");
}

/// Returns the bytes of one value; nullopt if they exceed `max_value_bytes`.
std::optional<std::uint64_t> value_bytes_of(DType dtype, std::span<const std::uint64_t> extents) {
  if (std::ranges::count(extents, 0U) > 0) return 0;
  std::uint64_t room = max_value_bytes / size_of(dtype);
  std::uint64_t bytes = size_of(dtype);
  for (const std::uint64_t extent : extents) {
    room /= extent;
    if (room == 0) return std::nullopt;
    bytes *= extent;
  }
  return bytes;
}

/// Converts at most `Shape::max_rank` - 1 extents, which leaves one axis for the batch.
Shape shape_of_extents(std::span<const std::uint64_t> extents) {
  Shape shape;
  for (std::size_t axis = extents.size(); axis-- > 0;)
    shape = shape.with_outer(static_cast<std::size_t>(extents[axis]));
  return shape;
}

}  // namespace

std::uint64_t StoredArray::values() const {
  std::uint64_t all = 0;
  for (const ArrayPiece& piece : pieces) all += piece.values;
  return all;
}

FileRange StoredArray::locate(std::uint64_t number, const ArrayFile*& file) const {
  const ArrayPiece* piece = pieces.data();
  for (; number >= piece->values; ++piece) number -= piece->values;
  file = piece->file.get();
  return {piece->begin + number * piece->stride, bytes};
}

bool StoredArray::is_dense() const {
  return std::ranges::all_of(pieces,
                             [&](const ArrayPiece& piece) { return piece.stride == bytes; });
}

StoredArray npy_array(std::shared_ptr<const ArrayFile> file) {
  const std::string name = file->name() + " ";
  std::vector<std::byte> buffer;
  const FileRange beginning{0, std::min<std::uint64_t>(file->bytes(), max_npy_header_bytes)};
  NpyHeader header;
  try {
    header = parse_npy_header(file->read(beginning, buffer));
  } catch (const Error& error) {
    if (const Status kept = file->check_intact(beginning); !kept.is_ok())
      throw Error(ErrorCode::io, kept.reason());
    if (error.code() != ErrorCode::corrupt) throw;
    refuse_array(name + error.what());
  }
  const std::string shape = "shape " + extents_text(header.extents);
  if (header.extents.empty())
    refuse_array(name + "has a single number, without a first axis that numbers records");
  if (header.extents.size() > Shape::max_rank)
    refuse_array(name + "has " + shape + "; at most " + std::to_string(Shape::max_rank) +
                 " extents are possible");
  const std::span<const std::uint64_t> of_value = std::span(header.extents).subspan(1);
  const std::uint64_t values = header.extents[0];
  const std::optional<std::uint64_t> bytes = value_bytes_of(header.dtype, of_value);
  if (!bytes)
    refuse_array(name + "has " + shape + ", with records of more than " +
                 std::to_string(max_value_bytes) + " bytes");
  if (values > 0 && *bytes == 0) refuse_array(name + "has " + shape + ", so its records are empty");
  const std::uint64_t there = file->bytes() - header.data_offset;
  if (*bytes > 0 && values > there / *bytes)
    refuse_array(name + "is cut short: " + shape + " of " + to_string(header.dtype) +
                 " needs more than " + "the " + std::to_string(there) +
                 " bytes that are there; copy or write it again");
  return {.dtype = header.dtype,
          .shape = shape_of_extents(of_value),
          .bytes = *bytes,
          .pieces = {{std::move(file), header.data_offset, *bytes, values}}};
}

StoredArray raw_array(std::shared_ptr<const ArrayFile> file, const RawLayout& layout) {
  const std::optional<std::uint64_t> bytes = value_bytes_of(layout.dtype, layout.extents);
  if (!bytes || *bytes == 0 || layout.extents.size() >= Shape::max_rank)
    refuse_array("shape " + extents_text(layout.extents) + " of " + to_string(layout.dtype) +
                 " is none of up to " + std::to_string(Shape::max_rank - 1) +
                 " extents of at least 1, with at most " + std::to_string(max_value_bytes) +
                 " bytes");
  const std::uint64_t record_bytes = layout.record_bytes.value_or(layout.offset + *bytes);
  if (layout.offset > record_bytes || *bytes > record_bytes - layout.offset)
    refuse_array("values of " + std::to_string(*bytes) + " bytes at offset " +
                 std::to_string(layout.offset) + " do not fit into records of " +
                 std::to_string(record_bytes) + " bytes");
  if (file->bytes() < layout.header_bytes ||
      (file->bytes() - layout.header_bytes) % record_bytes != 0)
    refuse_array(file->name() + " has " + std::to_string(file->bytes()) +
                 " bytes, which do not hold a header of " + std::to_string(layout.header_bytes) +
                 " bytes and whole records of " + std::to_string(record_bytes) +
                 "; it is cut short, or another file");
  const std::uint64_t values = (file->bytes() - layout.header_bytes) / record_bytes;
  return {.dtype = layout.dtype,
          .shape = shape_of_extents(layout.extents),
          .bytes = *bytes,
          .pieces = {{std::move(file), layout.header_bytes + layout.offset, record_bytes, values}}};
}

void append(StoredArray& array, StoredArray more) {
  if (more.dtype != array.dtype || more.shape != array.shape)
    refuse_array(more.pieces.front().file->name() + " has values " + to_string(more.dtype) + " " +
                 more.shape.to_string() + ", and " + array.pieces.front().file->name() +
                 " before it " + to_string(array.dtype) + " " + array.shape.to_string());
  std::ranges::move(more.pieces, std::back_inserter(array.pieces));
}

StoredArray windows_of(StoredArray array, std::uint64_t length, std::uint64_t stride) {
  if (array.shape.rank() > 0 || !array.is_dense())
    refuse_array("a window needs an array of one dimension; values here are " +
                 std::string(to_string(array.dtype)) + " " + array.shape.to_string() +
                 (array.is_dense() ? "" : " with other bytes between them"));
  if (length > max_value_bytes / array.bytes)
    refuse_array("a window of " + std::to_string(length) + " values has more than " +
                 std::to_string(max_value_bytes) + " bytes");
  const std::uint64_t longest = std::ranges::max(array.pieces, {}, [](const ArrayPiece& piece) {
                                  return piece.values;
                                }).values;
  if (longest < length)
    refuse_array("windows of " + std::to_string(length) + " are longer than the " +
                 (array.pieces.size() == 1 ? "array of " : "longest array, of ") +
                 std::to_string(longest));
  for (ArrayPiece& piece : array.pieces) {
    piece.values = piece.values < length ? 0 : (piece.values - length) / stride + 1;
    piece.stride = stride * array.bytes;
  }
  array.bytes *= length;
  array.shape = {static_cast<std::size_t>(length)};
  return array;
}

}  // namespace millrace
