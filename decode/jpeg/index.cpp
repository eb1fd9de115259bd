// SPDX-License-Identifier: Apache-2.0
#include "jpeg/index.h"

#include <algorithm>

#include "jpeg/packed_numbers.h"

namespace millrace::jpeg {
namespace {

constexpr std::uint64_t format_of_tiles = 1;
constexpr std::uint64_t format_of_rows = 2;
constexpr std::size_t header_bytes = 18;
constexpr std::size_t parameters_at = 14;
constexpr unsigned max_parameter = 15;
constexpr std::size_t max_point_bytes = 4 * max_rice_bits / 8;

/// A point as it is stored: differences from the point before, in one column more than the image
/// has components.
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

/// Writes the points and their columns' parameters, and truncates `packed` after them.
template <std::size_t columns>
void pack_points(const std::vector<SeekPoint>& points, std::vector<std::byte>& packed) {
  // Computes the parameters from some of the points, since they need not be optimal.
  const std::size_t step = 1 + points.size() / 64;
  std::array<std::uint64_t, columns> sums{};
  std::uint64_t summed = 1;
  for (std::size_t n = 1; n < points.size(); n += step, ++summed) {
    const Row<columns> row = difference<columns>(points[n], points[n - 1]);
    for (std::size_t column = 0; column < columns; ++column) sums[column] += row[column];
  }
  std::array<unsigned, columns> parameters{};
  for (std::size_t column = 0; column < columns; ++column) {
    parameters[column] = parameter_for(sums[column] / summed, max_parameter);
    put_bytes(parameters[column], 1, packed.data() + parameters_at + column);
  }
  RiceWriter writer(packed.data() + header_bytes);
  for (std::size_t n = 1; n < points.size(); ++n)
    writer.put_numbers(difference<columns>(points[n], points[n - 1]), parameters);
  packed.resize(static_cast<std::size_t>(writer.end() - packed.data()));
}

/// Reads all points but the first one. Returns false if a scan of `scan_bits` bits cannot have
/// them.
template <std::size_t columns>
bool unpack_points(std::span<const std::byte> body, std::uint64_t scan_bits,
                   std::vector<SeekPoint>& points) {
  std::array<unsigned, columns> parameters{};
  for (std::size_t column = 0; column < columns; ++column) {
    parameters[column] = static_cast<unsigned>(take_bytes(body.data() + parameters_at + column, 1));
    if (parameters[column] > max_parameter) return false;
  }
  RiceReader reader(body.subspan(header_bytes));
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
  put_bytes(index.granularity == IndexPoints::rows ? format_of_rows : format_of_tiles, 1,
            packed.data());
  put_bytes(static_cast<std::uint64_t>(components), 1, packed.data() + 1);
  put_bytes(count, 4, packed.data() + 2);
  put_bytes(jpeg, 8, packed.data() + 6);
  packed.resize(header_bytes + max_point_bytes * count + sizeof(std::uint64_t));
  if (components == 1)
    pack_points<2>(index.points, packed);
  else
    pack_points<4>(index.points, packed);
  append_checksum(packed);
}

bool unpack_index(std::span<const std::byte> packed, const Frame& frame, std::uint64_t jpeg,
                  SeekIndex& taken) {
  std::vector<SeekPoint>& index = taken.points;
  index.clear();
  if (packed.size() < header_bytes + checksum_bytes || !has_checksum(packed)) return false;
  const std::span<const std::byte> body = packed.first(packed.size() - checksum_bytes);
  const auto count = static_cast<std::size_t>(take_bytes(packed.data() + 2, 4));
  const auto columns = static_cast<std::size_t>(frame.component_count) + 1;
  const std::uint64_t format = take_bytes(packed.data(), 1);
  const auto granularity = format == format_of_rows ? IndexPoints::rows : IndexPoints::tiles;
  // Each number takes at least one bit.
  if ((format != format_of_tiles && format != format_of_rows) ||
      take_bytes(packed.data() + 1, 1) + 1 != columns || take_bytes(packed.data() + 6, 8) != jpeg ||
      count == 0 || count > static_cast<std::size_t>(Tiles(frame, granularity).count) ||
      (count - 1) / 8 > body.size())
    return false;
  index.resize(count);
  const std::uint64_t scan_bits = std::uint64_t{8} * frame.scan.size();
  const bool sound = columns == 2 ? unpack_points<2>(body, scan_bits, index)
                                  : unpack_points<4>(body, scan_bits, index);
  if (!sound) {
    index.clear();
    return false;
  }
  taken.granularity = granularity;
  return true;
}

}  // namespace millrace::jpeg
