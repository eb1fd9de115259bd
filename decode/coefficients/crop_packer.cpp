// SPDX-License-Identifier: Apache-2.0
#include <millrace/crop_work.h>
#include <millrace/detail/crop_layout.h>
#include <millrace/detail/crop_packer.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "codec/limits.h"
#include "coefficients/record.h"
#include "jpeg/frame.h"

namespace millrace {
namespace {

/// A range of numbers.
struct Range {
  int first;
  int last;

  int count() const { return last - first + 1; }
  Range divided(int by) const { return {first / by, last / by}; }
};

/// Returns the samples along an axis that `count` pixels need, from pixel `begin` on. Smoothed
/// chroma needs a neighbour on each side.
Range samples_for(int begin, int count, int pixels_per_sample, int samples) {
  const int beside = pixels_per_sample > 1 ? 1 : 0;
  return {std::max(begin / pixels_per_sample - beside, 0),
          std::min((begin + count - 1) / pixels_per_sample + beside, samples - 1)};
}

int divided_up(int number, int by) { return (number + by - 1) / by; }

std::uint32_t rounded(std::size_t bytes) { return static_cast<std::uint32_t>((bytes + 3) / 4 * 4); }

/// Copies numbers to an offset of the packed crop.
template <typename Number>
void put(std::span<const Number> numbers, std::byte* crop, std::uint32_t offset) {
  if (!numbers.empty()) std::memcpy(crop + offset, numbers.data(), numbers.size_bytes());
}

}  // namespace

struct CropPacker::Source {
  coefficients::RecordReader reader;
  jpeg::Frame frame;
  /// The crop that was measured.
  CropHeader header;
  CropAxis horizontal;
  CropAxis vertical;
  /// Rows of all components: each one's offset, the ends of its tiles, and its tiles.
  std::vector<std::uint32_t> row_offsets;
  std::vector<std::uint32_t> ends;
  std::vector<std::span<const std::uint8_t>> rows;

  void begin(const Crop& crop);
  /// Gives a part of `bytes` bytes the next place. Returns its offset.
  std::uint32_t take(std::size_t bytes) {
    const std::uint32_t offset = header.bytes;
    header.bytes += rounded(bytes);
    return offset;
  }
  CropHeader::Axis take(const CropAxis& axis) {
    return {take(axis.begins.size_bytes()), take(axis.weights.size_bytes()), axis.taps,
            axis.stride};
  }
  /// Measures a component's rows. Returns false if they are corrupt.
  bool take_rows(int component);
};

CropPacker::CropPacker() : source_(std::make_unique<Source>()) {}
CropPacker::~CropPacker() = default;

Status CropPacker::open(std::span<const std::byte> record) {
  return source_->reader.open(record, source_->frame);
}

Size CropPacker::size() const { return {source_->frame.width, source_->frame.height}; }

/// Sets all numbers of the header that do not depend on other parts.
void CropPacker::Source::begin(const Crop& crop) {
  const jpeg::Component& light = frame.components.front();
  const Region& region = crop.region;
  header.bytes = sizeof header;
  header.components = frame.component_count;
  header.across = light.across;
  header.down = light.down;
  header.chroma_width = divided_up(frame.width, light.across);
  header.chroma_height = divided_up(frame.height, light.down);
  header.x = region.x;
  header.y = region.y;
  header.width = region.width;
  header.height = region.height;
  header.vertical_first = crop.vertical_first ? 1 : 0;
  for (int number = 0; number < frame.component_count; ++number) {
    const bool chroma = number > 0;
    const Range columns = samples_for(region.x, region.width, chroma ? light.across : 1,
                                      chroma ? header.chroma_width : frame.width)
                              .divided(tile_width);
    const Range rows = samples_for(region.y, region.height, chroma ? light.down : 1,
                                   chroma ? header.chroma_height : frame.height)
                           .divided(tile_height);
    CropHeader::Plane& plane = header.planes[number];
    plane.first_tile = columns.first;
    plane.tiles = columns.count();
    plane.first_row = rows.first;
    plane.rows = rows.count();
    const auto& steps = frame.components[static_cast<std::size_t>(number)].steps;
    std::ranges::transform(steps, plane.steps,
                           [](std::uint16_t step) { return static_cast<std::uint8_t>(step); });
  }
}

bool CropPacker::Source::take_rows(int component) {
  CropHeader::Plane& plane = header.planes[component];
  const auto tiles = static_cast<std::size_t>(plane.tiles);
  plane.rows_at = take(static_cast<std::size_t>(plane.rows) * sizeof(std::uint32_t));
  for (int row = 0; row < plane.rows; ++row) {
    ends.resize(ends.size() + tiles);
    const auto bytes = reader.tiles(component, plane.first_row + row, plane.first_tile, plane.tiles,
                                    ends.data() + (ends.size() - tiles));
    if (!bytes) return false;
    row_offsets.push_back(take(tiles * sizeof(std::uint32_t)));
    static_cast<void>(take(bytes->size()));
    rows.push_back(*bytes);
  }
  return true;
}

Status CropPacker::measure(const Crop& crop, std::size_t most_scratch, std::size_t& bytes) {
  bytes = 0;
  check_inside(crop.region, size());
  Source& source = *source_;
  source.begin(crop);
  const auto width = static_cast<std::int32_t>(crop.horizontal.begins.size());
  if (source.header.width > CropHeader::most_width ||
      crop_scratch_bytes(source.header, width) > most_scratch)
    return Status::ok();
  source.horizontal = crop.horizontal;
  source.vertical = crop.vertical;
  source.header.horizontal = source.take(crop.horizontal);
  source.header.vertical = source.take(crop.vertical);
  source.row_offsets.clear();
  source.ends.clear();
  source.rows.clear();
  for (int component = 0; component < source.header.components; ++component)
    if (!source.take_rows(component))
      return Status::bad("its coefficients are corrupt; pack the dataset again");
  bytes = source.header.bytes;
  return Status::ok();
}

void CropPacker::pack(std::byte* to) const {
  const CropHeader& header = source_->header;
  new (to) CropHeader(header);
  for (const auto& [axis, place] : {std::pair(&source_->horizontal, &header.horizontal),
                                    std::pair(&source_->vertical, &header.vertical)}) {
    put(axis->begins, to, place->begins_at);
    put(axis->weights, to, place->weights_at);
  }
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
