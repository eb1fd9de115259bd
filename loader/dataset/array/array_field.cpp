// SPDX-License-Identifier: Apache-2.0
#include "dataset/array/array_field.h"

#include <bit>
#include <cstring>
#include <limits>

namespace millrace {
namespace {

static_assert(std::endian::native == std::endian::little);

[[noreturn]] void refuse_values(const std::string& what) { throw Error(ErrorCode::corrupt, what); }

/// Calls `function` with a value of the integer type of `dtype`. Returns false for uint64, which
/// exceeds int64, and for types other than integers.
template <typename Function>
bool with_integer(DType dtype, const Function& function) {
  switch (dtype) {
    case DType::boolean:
    case DType::uint8:
      return function(std::uint8_t{}), true;
    case DType::int8:
      return function(std::int8_t{}), true;
    case DType::int16:
      return function(std::int16_t{}), true;
    case DType::uint16:
      return function(std::uint16_t{}), true;
    case DType::int32:
      return function(std::int32_t{}), true;
    case DType::uint32:
      return function(std::uint32_t{}), true;
    case DType::int64:
      return function(std::int64_t{}), true;
    default:
      return false;
  }
}

void make_int64(std::span<const std::byte> stored, DType dtype, std::vector<std::byte>& made) {
  with_integer(dtype, [&](auto type) {
    using Integer = decltype(type);
    const std::size_t count = stored.size() / sizeof(Integer);
    made.resize(count * sizeof(std::int64_t));
    for (std::size_t n = 0; n < count; ++n) {
      Integer value;
      std::memcpy(&value, stored.data() + n * sizeof value, sizeof value);
      const std::int64_t wide{value};  // NOLINT(bugprone-signed-char-misuse): a number
      std::memcpy(made.data() + n * sizeof wide, &wide, sizeof wide);
    }
  });
}

void put_side_by_side(std::span<const std::byte> planar, std::uint64_t planes, std::byte* to) {
  const auto count = static_cast<std::size_t>(planes);
  const std::size_t pixels = planar.size() / count;
  for (std::size_t plane = 0; plane < count; ++plane)
    for (std::size_t pixel = 0; pixel < pixels; ++pixel)
      to[pixel * count + plane] = planar[plane * pixels + pixel];
}

}  // namespace

ArrayField::ArrayField(std::string name, StoredArray array)
    : spec_{.name = std::move(name), .dtype = array.dtype, .shape = array.shape},
      array_(std::move(array)) {}

std::uint64_t ArrayField::records() const {
  return offsets_ ? offsets_->values() - 1 : array_.values();
}

void ArrayField::vary_by(StoredArray offsets, std::uint64_t max_length) {
  const std::string name = offsets.pieces.front().file->name();
  const bool integers = offsets.dtype == DType::int32 || offsets.dtype == DType::uint32 ||
                        offsets.dtype == DType::int64 || offsets.dtype == DType::uint64;
  if (!integers || offsets.shape.rank() > 0)
    refuse_values(name + " has values " + to_string(offsets.dtype) + " " +
                  offsets.shape.to_string() +
                  "; offsets are one integer for each record and one more, of 32 or 64 bits");
  if (offsets.values() == 0)
    refuse_values(name + " is empty; offsets are one more than there are records");
  if (array_.pieces.size() > 1 || !array_.is_dense())
    refuse_values("offsets need values of one file, one behind the other");
  if (array_.bytes == 0) refuse_values("its values are empty");
  if (array_.shape.rank() + 1 >= Shape::max_rank)
    refuse_values("its values have shape " + array_.shape.to_string() +
                  ", which leaves no room for how " + "many there are");
  offsets_ = std::move(offsets);
  spec_.shape = array_.shape.with_outer(static_cast<std::size_t>(max_length));
  spec_.variable = true;
}

void ArrayField::widen() {
  if (!with_integer(array_.dtype, [](auto) {}))
    refuse_values(
        "its values are " + std::string(to_string(array_.dtype)) +
        "; only integers of up to 64 bits with a sign, or 32 without, can be read as int64");
  widens_ = true;
  spec_.dtype = DType::int64;
}

void ArrayField::encode(PixelOrder order) {
  const Shape& shape = array_.shape;
  const std::size_t rank = order == PixelOrder::grey ? 2 : 3;
  const bool fits = shape.rank() == rank && array_.dtype == DType::uint8 && !offsets_ && !widens_;
  const std::size_t colours =
      !fits || order == PixelOrder::grey ? 1 : shape[order == PixelOrder::chw ? 0 : 2];
  if (!fits || (colours != 1 && colours != 3))
    refuse_values(
        "its values are " + std::string(to_string(array_.dtype)) + " " + shape.to_string() +
        (offsets_ ? " in varying number" : "") + "; an image is uint8 [3, height, width] (chw), " +
        "[height, width, 3] (hwc), either with 1 in place of 3, or [height, width] (grey)");
  const std::size_t first = order == PixelOrder::chw ? 1 : 0;
  image_header_ = std::string(colours == 3 ? "P6" : "P5") + "\n" +
                  std::to_string(shape[first + 1]) + " " + std::to_string(shape[first]) + "\n255\n";
  planes_ = order == PixelOrder::chw ? colours : 1;
  spec_.shape = {image_header_.size() + static_cast<std::size_t>(array_.bytes)};
}

ReadRange ArrayField::locate(std::uint64_t record, std::vector<std::byte>& buffer,
                             std::vector<ReadRange>& ranges) const {
  if (!offsets_) {
    const ArrayFile* file = nullptr;
    const FileRange range = array_.locate(record, file);
    return {file, range};
  }
  const ArrayPiece& piece = offsets_->pieces.front();
  const std::uint64_t each = offsets_->bytes;
  const FileRange both{piece.begin + record * each, 2 * each};
  ranges.emplace_back(piece.file.get(), both);
  const std::span<const std::byte> bytes = piece.file->read(both, buffer);
  std::int64_t limits[2] = {};
  bool representable = true;
  for (std::size_t n = 0; n < 2; ++n) {
    const std::byte* at = bytes.data() + n * static_cast<std::size_t>(each);
    if (offsets_->dtype == DType::uint64) {
      std::uint64_t value = 0;
      std::memcpy(&value, at, sizeof value);
      representable = representable && value <= std::uint64_t{INT64_MAX};
      limits[n] = static_cast<std::int64_t>(value);
    } else {
      with_integer(offsets_->dtype, [&](auto value) {
        std::memcpy(&value, at, sizeof value);
        limits[n] = std::int64_t{value};  // NOLINT(bugprone-signed-char-misuse): a number
      });
    }
  }
  const ArrayPiece& values = array_.pieces.front();
  const auto from = static_cast<std::uint64_t>(limits[0]);
  const auto to = static_cast<std::uint64_t>(limits[1]);
  if (!representable || limits[0] < 0 || limits[1] < limits[0] || to > values.values) {
    if (const Status kept = piece.file->check_intact(both); !kept.is_ok())
      throw Error(ErrorCode::io, kept.reason());
    throw Error(ErrorCode::bad_record,
                "its offsets in " + piece.file->name() + " are " + std::to_string(limits[0]) +
                    " and " + std::to_string(limits[1]) + "; they must not go backwards, nor " +
                    "beyond the " + std::to_string(values.values) + " values of " +
                    values.file->name());
  }
  return {values.file.get(), {values.begin + from * array_.bytes, (to - from) * array_.bytes}};
}

std::span<const std::byte> ArrayField::read(std::uint64_t record, Buffers& buffers,
                                            std::vector<ReadRange>& ranges) const {
  const auto [file, range] = locate(record, buffers.offsets, ranges);
  ranges.emplace_back(file, range);
  const std::span<const std::byte> stored = file->read(range, buffers.stored);
  if (widens_) {
    make_int64(stored, array_.dtype, buffers.made);
    return buffers.made;
  }
  if (image_header_.empty()) return stored;
  buffers.made.resize(image_header_.size() + stored.size());
  std::memcpy(buffers.made.data(), image_header_.data(), image_header_.size());
  std::byte* const pixels = buffers.made.data() + image_header_.size();
  if (planes_ > 1)
    put_side_by_side(stored, planes_, pixels);
  else
    std::memcpy(pixels, stored.data(), stored.size());
  return buffers.made;
}

}  // namespace millrace
