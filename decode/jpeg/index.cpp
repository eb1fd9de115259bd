// SPDX-License-Identifier: Apache-2.0
#include "jpeg/index.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace millrace::jpeg {
namespace {

constexpr std::uint64_t format_of_tiles = 1;
constexpr std::uint64_t format_of_rows = 2;
constexpr std::size_t header_bytes = 18;
constexpr std::size_t parameters_at = 14;
constexpr std::size_t checksum_bytes = 4;
constexpr unsigned most_ones = 24;
constexpr unsigned plain_bits = 32;
constexpr unsigned most_parameter = 15;
constexpr std::size_t most_point_bytes = 4 * (most_ones + plain_bits) / 8;

/// The stored columns of a point, as differences from the point before: one more than the image has
/// components.
template <std::size_t columns>
using Row = std::array<std::uint32_t, columns>;

template <std::size_t columns>
Row<columns> difference(const SeekPoint& point, const SeekPoint& before) {
  Row<columns> row{static_cast<std::uint32_t>(point.bit - before.bit)};
  for (std::size_t n = 0; n + 1 < columns; ++n) {
    const int d = static_cast<std::int16_t>(point.predictors[n] - before.predictors[n]);
    row[n + 1] = static_cast<std::uint16_t>(2 * d ^ d >> 31);
  }
  return row;
}

void put(std::uint64_t number, std::size_t bytes, std::byte* to) {
  for (std::size_t n = 0; n < bytes; ++n) to[n] = static_cast<std::byte>(number >> 8 * n);
}

std::uint64_t take(const std::byte* from, std::size_t bytes) {
  std::uint64_t number = 0;
  for (std::size_t n = 0; n < bytes; ++n)
    number |= std::to_integer<std::uint64_t>(from[n]) << 8 * n;
  return number;
}

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size()) & 0xFFFFFFFF;
}

/// A number as a Rice code. If the code has too many ones, only `is_plain` has a meaning.
struct RiceCode {
  RiceCode(std::uint32_t number, unsigned parameter) {
    const std::uint32_t ones = number >> parameter;
    is_plain = ones >= most_ones;
    bits = ones + 1 + parameter;
    const std::uint64_t prefix = ((std::uint64_t{1} << (ones & 31)) - 1) << 1;
    value = prefix << parameter | (number & ((1U << parameter) - 1));
  }

  bool is_plain = false;
  std::uint32_t bits = 0;
  std::uint64_t value = 0;
};

/// Writes bits, from each byte's highest bit on.
class BitWriter {
 public:
  /// The memory must have 8 bytes more than are written.
  explicit BitWriter(std::byte* to) : to_(to) {}

  template <std::size_t columns>
  void put_row(const Row<columns>& row, const std::array<unsigned, columns>& parameters) {
    std::uint64_t all = 0;
    std::uint32_t bits = 0;
    bool is_plain = false;
    for (std::size_t column = 0; column < columns; ++column) {
      const RiceCode code(row[column], parameters[column]);
      all = all << (code.bits & 63) | code.value;
      bits += code.bits;
      is_plain = is_plain || code.is_plain;
    }
    if (!is_plain && bits <= most_at_once) [[likely]]
      return put(all, bits);
    for (std::size_t column = 0; column < columns; ++column)
      put_number(row[column], parameters[column]);
  }
  /// Returns the place of the next whole byte.
  std::byte* end() const { return to_ + (count_ > 0 ? 1 : 0); }

 private:
  static constexpr std::uint32_t most_at_once = 56;

  void put_number(std::uint32_t number, unsigned parameter) {
    const RiceCode code(number, parameter);
    if (!code.is_plain) return put(code.value, code.bits);
    put((std::uint64_t{1} << most_ones) - 1, most_ones);
    put(number, plain_bits);
  }
  /// Writes 1 to `most_at_once` bits.
  void put(std::uint64_t value, unsigned bits) {
    held_ |= value << (64 - bits) >> count_;
    count_ += bits;
    const std::uint64_t bytes = __builtin_bswap64(held_);
    std::memcpy(to_, &bytes, sizeof bytes);
    to_ += count_ / 8;
    held_ <<= count_ / 8 * 8;
    count_ %= 8;
  }

  std::byte* to_;
  std::uint64_t held_ = 0;
  /// Bits of `held_` that are not in whole bytes yet.
  unsigned count_ = 0;
};

class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> from) : from_(from) {}

  std::uint32_t take_number(unsigned parameter) {
    fill();
    const auto ones = static_cast<unsigned>(std::countl_one(held_));
    if (ones >= most_ones) {
      held_ <<= most_ones;
      count_ -= most_ones;
      fill();
      return take(plain_bits);
    }
    held_ <<= ones + 1;
    count_ -= ones + 1;
    return ones << parameter | take(parameter);
  }
  /// Returns whether more bits were read than exist. Bits past the end are ones.
  bool is_past_end() const { return past_end_ > count_; }

 private:
  std::uint32_t take(unsigned bits) {
    const auto value = static_cast<std::uint32_t>(held_ >> 1 >> (63 - bits));
    held_ <<= bits;
    count_ -= bits;
    return value;
  }
  /// Fills `held_` to at least 56 bits.
  void fill() {
    if (from_.size() - read_ >= sizeof held_) [[likely]] {
      std::uint64_t next;
      std::memcpy(&next, from_.data() + read_, sizeof next);
      held_ |= __builtin_bswap64(next) >> count_;
      read_ += (63 - count_) >> 3;
      count_ |= 56;
      return;
    }
    for (; count_ <= 56; count_ += 8) {
      const bool is_there = read_ < from_.size();
      held_ |= (is_there ? std::to_integer<std::uint64_t>(from_[read_++]) : 0xFF) << (56 - count_);
      if (!is_there) past_end_ += 8;
    }
  }

  std::span<const std::byte> from_;
  std::size_t read_ = 0;
  std::uint64_t held_ = 0;
  unsigned count_ = 0;
  /// Bits that were added past the end.
  unsigned past_end_ = 0;
};

/// Returns a parameter near the best one of a column: the number of bits of the mean's half-life,
/// which is ln 2 times the mean.
unsigned parameter_for(std::uint64_t mean) {
  return std::min(static_cast<unsigned>(std::bit_width(mean * 71 / 102)), most_parameter);
}

/// Writes the points and their columns' parameters, and cuts `packed` after them.
template <std::size_t columns>
void pack_points(const std::vector<SeekPoint>& points, std::vector<std::byte>& packed) {
  // Computed from some of the points: a parameter need not be the best.
  const std::size_t step = 1 + points.size() / 64;
  std::array<std::uint64_t, columns> sums{};
  std::uint64_t summed = 1;
  for (std::size_t n = 1; n < points.size(); n += step, ++summed) {
    const Row<columns> row = difference<columns>(points[n], points[n - 1]);
    for (std::size_t column = 0; column < columns; ++column) sums[column] += row[column];
  }
  std::array<unsigned, columns> parameters{};
  for (std::size_t column = 0; column < columns; ++column) {
    parameters[column] = parameter_for(sums[column] / summed);
    put(parameters[column], 1, packed.data() + parameters_at + column);
  }
  BitWriter writer(packed.data() + header_bytes);
  for (std::size_t n = 1; n < points.size(); ++n)
    writer.put_row(difference<columns>(points[n], points[n - 1]), parameters);
  packed.resize(static_cast<std::size_t>(writer.end() - packed.data()));
}

/// Reads all points but the first one. Returns false if a scan of `scan_bits` bits cannot have
/// them.
template <std::size_t columns>
bool unpack_points(std::span<const std::byte> body, std::uint64_t scan_bits,
                   std::vector<SeekPoint>& points) {
  std::array<unsigned, columns> parameters{};
  for (std::size_t column = 0; column < columns; ++column) {
    parameters[column] = static_cast<unsigned>(take(body.data() + parameters_at + column, 1));
    if (parameters[column] > most_parameter) return false;
  }
  BitReader reader(body.subspan(header_bytes));
  SeekPoint point;
  for (std::size_t n = 1; n < points.size(); ++n) {
    const std::uint64_t before = point.bit;
    point.bit += reader.take_number(parameters[0]);
    for (std::size_t column = 1; column < columns; ++column) {
      const std::uint32_t stored = reader.take_number(parameters[column]);
      point.predictors[column - 1] = static_cast<std::uint16_t>(
          point.predictors[column - 1] + (stored >> 1 ^ (0U - (stored & 1))));
    }
    if (point.bit >= scan_bits || point.bit <= before || reader.is_past_end()) return false;
    points[n] = point;
  }
  return true;
}

}  // namespace

void pack_index(const SeekIndex& index, int components, std::uint64_t jpeg,
                std::vector<std::byte>& packed) {
  const std::size_t count = index.points.size();
  packed.assign(header_bytes, std::byte{0});
  put(index.of == IndexPoints::rows ? format_of_rows : format_of_tiles, 1, packed.data());
  put(static_cast<std::uint64_t>(components), 1, packed.data() + 1);
  put(count, 4, packed.data() + 2);
  put(jpeg, 8, packed.data() + 6);
  packed.resize(header_bytes + most_point_bytes * count + sizeof(std::uint64_t));
  if (components == 1)
    pack_points<2>(index.points, packed);
  else
    pack_points<4>(index.points, packed);
  const std::size_t size = packed.size();
  packed.resize(size + checksum_bytes);
  put(checksum_of(std::span(packed).first(size)), checksum_bytes, packed.data() + size);
}

bool unpack_index(std::span<const std::byte> packed, const Frame& frame, std::uint64_t jpeg,
                  SeekIndex& taken) {
  std::vector<SeekPoint>& index = taken.points;
  index.clear();
  if (packed.size() < header_bytes + checksum_bytes) return false;
  const std::span<const std::byte> body = packed.first(packed.size() - checksum_bytes);
  const auto count = static_cast<std::size_t>(take(packed.data() + 2, 4));
  const auto columns = static_cast<std::size_t>(frame.component_count) + 1;
  const std::uint64_t format = take(packed.data(), 1);
  const auto of = format == format_of_rows ? IndexPoints::rows : IndexPoints::tiles;
  // Each number has at least a bit.
  if ((format != format_of_tiles && format != format_of_rows) ||
      take(packed.data() + 1, 1) + 1 != columns || take(packed.data() + 6, 8) != jpeg ||
      take(body.data() + body.size(), checksum_bytes) != checksum_of(body) || count == 0 ||
      count > static_cast<std::size_t>(Tiles(frame, of).count) || (count - 1) / 8 > body.size())
    return false;
  index.resize(count);
  const std::uint64_t scan_bits = std::uint64_t{8} * frame.scan.size();
  const bool sound = columns == 2 ? unpack_points<2>(body, scan_bits, index)
                                  : unpack_points<4>(body, scan_bits, index);
  if (!sound) {
    index.clear();
    return false;
  }
  taken.of = of;
  return true;
}

}  // namespace millrace::jpeg
