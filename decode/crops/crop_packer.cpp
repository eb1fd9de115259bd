// SPDX-License-Identifier: Apache-2.0
#include <millrace/crop_work.h>
#include <millrace/detail/crop_packer.h>

#include <span>
#include <utility>
#include <vector>

#include "codec/limits.h"
#include "coefficients/record.h"
#include "crops/crop_parts.h"
#include "jpeg/frame.h"

namespace millrace {

struct CropPacker::Source {
  coefficients::RecordReader reader;
  jpeg::Frame frame;
  /// The crop that was measured.
  crops::CropParts parts;
  /// Rows of all components: each one's offset, the ends of its tiles, and its tiles.
  std::vector<std::uint32_t> row_offsets;
  std::vector<std::uint32_t> ends;
  std::vector<std::span<const std::uint8_t>> rows;

  /// Measures a component's rows. Returns false if they are corrupt.
  bool take_rows(int component);
};

CropPacker::CropPacker() : source_(std::make_unique<Source>()) {}
CropPacker::~CropPacker() = default;

Status CropPacker::open(std::span<const std::byte> record) {
  return source_->reader.open(record, source_->frame);
}

Size CropPacker::size() const { return {source_->frame.width, source_->frame.height}; }

bool CropPacker::Source::take_rows(int component) {
  CropHeader::Plane& plane = parts.header.planes[component];
  const auto tiles = static_cast<std::size_t>(plane.tiles);
  plane.rows_at = parts.take(static_cast<std::size_t>(plane.rows) * sizeof(std::uint32_t));
  // The rows lie far apart in memory. These reads wait for one another, prefetches do not.
  for (int row = 0; row < plane.rows; ++row) reader.prefetch_ends(component, plane.first_row + row);
  for (int row = 0; row < plane.rows; ++row) {
    ends.resize(ends.size() + tiles);
    const auto bytes = reader.tiles(component, plane.first_row + row, plane.first_tile, plane.tiles,
                                    ends.data() + (ends.size() - tiles));
    if (!bytes) return false;
    row_offsets.push_back(parts.take(tiles * sizeof(std::uint32_t)));
    static_cast<void>(parts.take(bytes->size()));
    rows.push_back(*bytes);
  }
  return true;
}

Status CropPacker::measure(const Crop& crop, std::size_t max_scratch, std::size_t& bytes) {
  bytes = 0;
  check_inside(crop.region, size());
  Source& source = *source_;
  if (!source.parts.begin(source.frame, crop, max_scratch)) return Status::ok();
  source.row_offsets.clear();
  source.ends.clear();
  source.rows.clear();
  for (int component = 0; component < source.parts.header.components; ++component)
    if (!source.take_rows(component))
      return Status::bad("its coefficients are corrupt; pack the dataset again");
  bytes = source.parts.bytes();
  return Status::ok();
}

std::size_t CropPacker::scratch_bytes() const { return source_->parts.scratch_bytes(); }

void CropPacker::pack(std::byte* to) const {
  using crops::put;
  const CropHeader& header = source_->parts.header;
  source_->parts.put(to);
  std::size_t next = 0;
  std::span<const std::uint32_t> ends = source_->ends;
  for (int component = 0; component < header.components; ++component) {
    const CropHeader::Plane& plane = header.planes[component];
    const auto count = static_cast<std::size_t>(plane.rows);
    const auto tiles = static_cast<std::size_t>(plane.tiles);
    const auto offsets = std::span(std::as_const(source_->row_offsets)).subspan(next, count);
    put(offsets, to, plane.rows_at);
    for (std::size_t row = 0; row < count; ++row, ++next, ends = ends.subspan(tiles)) {
      put(ends.first(tiles), to, offsets[row]);
      put(source_->rows[next], to,
          offsets[row] + static_cast<std::uint32_t>(tiles * sizeof(std::uint32_t)));
    }
  }
}

}  // namespace millrace
