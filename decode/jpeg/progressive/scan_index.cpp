// SPDX-License-Identifier: Apache-2.0
#include "jpeg/progressive/scan_index.h"

#include <algorithm>
#include <limits>

#include "jpeg/packed_numbers.h"

namespace millrace::jpeg {
namespace {

constexpr std::uint64_t format_of_scans = 3;
constexpr std::size_t scan_header_bytes = 14;
constexpr std::size_t point_columns = 5;
constexpr std::size_t column_of_runs = 4;
constexpr unsigned parameter_bits = 4;
constexpr unsigned all_zero = 15;
constexpr unsigned max_scan_parameter = 14;

/// Returns the number that a column stores for a point.
std::uint32_t stored_number(const SeekPoint& point, const SeekPoint& before, std::size_t column) {
  if (column == 0) return static_cast<std::uint32_t>(point.bit - before.bit);
  if (column == column_of_runs) return point.run;
  const int d =
      static_cast<std::int16_t>(point.predictors[column - 1] - before.predictors[column - 1]);
  return static_cast<std::uint16_t>(2 * d ^ d >> 31);
}

/// Sets a column of a point from the number that is stored for it.
void set_column(SeekPoint& point, const SeekPoint& before, std::size_t column,
                std::uint32_t stored) {
  if (column == 0) {
    point.bit = before.bit + stored;
  } else if (column == column_of_runs) {
    point.run = static_cast<std::uint16_t>(stored);
  } else {
    point.predictors[column - 1] = static_cast<std::uint16_t>(before.predictors[column - 1] +
                                                              (stored >> 1 ^ (0U - (stored & 1))));
  }
}

/// Reads all points of scan number `scan` except the first one. Returns false if a scan of
/// `scan_bits` bits cannot have them.
bool unpack_scan(RiceReader& reader, std::size_t scan, std::size_t scans, std::uint64_t scan_bits,
                 std::vector<SeekPoint>& points) {
  for (std::size_t column = 0; column < point_columns; ++column) {
    const std::uint32_t parameter = reader.take_bits(parameter_bits);
    for (std::size_t n = scan + scans; n < points.size(); n += scans) {
      const std::uint32_t stored = parameter == all_zero ? 0 : reader.take_number(parameter);
      if (column == column_of_runs && stored > std::numeric_limits<std::uint16_t>::max())
        return false;
      set_column(points[n], points[n - scans], column, stored);
    }
    if (reader.is_past_end()) return false;
  }
  // The points of a scan never decrease, so a check of the last one suffices.
  return points[points.size() - scans + scan].bit <= scan_bits;
}

}  // namespace

bool can_have_index(const Frame& frame, const Script& script) {
  constexpr std::size_t min_bytes = 16;
  static_assert(sizeof(SeekPoint) <= min_bytes);
  const std::size_t points = script.scans.size() * static_cast<std::size_t>(frame.mcus_down);
  return std::ranges::all_of(
             script.scans,
             [](const ProgressiveScan& scan) { return scan.restart_interval == 0; }) &&
         points <= frame.scan.size() / min_bytes && points <= max_scan_points;
}

void pack_scan_index(const SeekIndex& index, std::size_t scans, std::uint64_t jpeg,
                     std::vector<std::byte>& packed) {
  const std::vector<SeekPoint>& points = index.points;
  const std::size_t rows = points.size() / scans;
  packed.assign(scan_header_bytes, std::byte{0});
  put_bytes(format_of_scans, 1, packed.data());
  put_bytes(scans, 1, packed.data() + 1);
  put_bytes(rows, 4, packed.data() + 2);
  put_bytes(jpeg, 8, packed.data() + 6);
  constexpr std::size_t max_point_bytes = point_columns * max_rice_bits / 8;
  packed.resize(scan_header_bytes + max_point_bytes * points.size() + sizeof(std::uint64_t));
  RiceWriter writer(packed.data() + scan_header_bytes);
  for (std::size_t scan = 0; scan < scans; ++scan)
    for (std::size_t column = 0; column < point_columns; ++column) {
      const auto for_each_number = [&](const auto& take) {
        for (std::size_t n = scan + scans; n < points.size(); n += scans)
          take(stored_number(points[n], points[n - scans], column));
      };
      std::uint64_t sum = 0;
      for_each_number([&](std::uint32_t number) { sum += number; });
      const unsigned parameter =
          sum == 0 ? all_zero : parameter_for(sum / (rows - 1), max_scan_parameter);
      writer.put(parameter, parameter_bits);
      if (sum > 0)
        for_each_number([&](std::uint32_t number) { writer.put_number(number, parameter); });
    }
  packed.resize(static_cast<std::size_t>(writer.end() - packed.data()));
  append_checksum(packed);
}

bool unpack_scan_index(std::span<const std::byte> packed, const Frame& frame, const Script& script,
                       std::uint64_t jpeg, SeekIndex& index) {
  std::vector<SeekPoint>& points = index.points;
  points.clear();
  const std::size_t scans = script.scans.size();
  if (packed.size() < scan_header_bytes + checksum_bytes || !has_checksum(packed) ||
      take_bytes(packed.data(), 1) != format_of_scans ||
      take_bytes(packed.data() + 1, 1) != scans || take_bytes(packed.data() + 6, 8) != jpeg)
    return false;
  const auto rows = static_cast<std::size_t>(take_bytes(packed.data() + 2, 4));
  if (rows == 0 || rows > static_cast<std::size_t>(frame.mcus_down)) return false;
  points.resize(rows * scans);
  RiceReader reader(packed.first(packed.size() - checksum_bytes).subspan(scan_header_bytes));
  for (std::size_t scan = 0; scan < scans; ++scan) {
    const std::size_t end = scan + 1 < scans ? script.scans[scan + 1].offset : frame.scan.size();
    const std::uint64_t scan_bits = std::uint64_t{8} * (end - script.scans[scan].offset);
    if (unpack_scan(reader, scan, scans, scan_bits, points)) continue;
    points.clear();
    return false;
  }
  index.granularity = IndexPoints::rows;
  return true;
}

}  // namespace millrace::jpeg
