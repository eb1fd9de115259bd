// SPDX-License-Identifier: Apache-2.0
#include <millrace/crop_work.h>
#include <millrace/detail/crop_layout.h>
#include <millrace/detail/crop_packer.h>

#include <algorithm>
#include <cstring>
#include <new>

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

/// Writes parts one after the other, each at a multiple of 4.
class PartWriter {
 public:
  explicit PartWriter(std::span<std::byte> to) : to_(to) {}

  bool fits(std::size_t bytes) const { return bytes <= to_.size() - used_; }
  std::uint32_t used() const { return static_cast<std::uint32_t>(used_); }
  /// Returns memory for `count` numbers, which must fit.
  template <typename Number>
  Number* take(std::size_t count) {
    auto* const at = reinterpret_cast<Number*>(to_.data() + used_);
    used_ += rounded(count * sizeof(Number));
    return at;
  }
  static std::size_t rounded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

 private:
  std::span<std::byte> to_;
  std::size_t used_ = 0;
};

CropHeader::Axis put_axis(const CropAxis& axis, PartWriter& writer) {
  CropHeader::Axis put{.begins_at = writer.used(), .weights_at = 0, .taps = axis.taps};
  std::ranges::copy(axis.begins, writer.take<std::int32_t>(axis.begins.size()));
  put.weights_at = writer.used();
  std::ranges::copy(axis.weights, writer.take<std::int32_t>(axis.weights.size()));
  return put;
}

std::size_t bytes_of(const CropAxis& axis) {
  return axis.begins.size_bytes() + axis.weights.size_bytes();
}

}  // namespace

struct CropPacker::Source {
  coefficients::RecordReader reader;
  jpeg::Frame frame;

  CropHeader begin(const Crop& crop) const;
  /// Copies a component's rows. Returns false if they do not fit.
  bool put_rows(int component, CropHeader::Plane& plane, PartWriter& writer, Status& status) const;
};

CropPacker::CropPacker() : source_(std::make_unique<Source>()) {}
CropPacker::~CropPacker() = default;

Status CropPacker::open(std::span<const std::byte> record) {
  return source_->reader.open(record, source_->frame);
}

bool CropPacker::has_right_checksum() const { return source_->reader.has_right_checksum(); }

Size CropPacker::size() const { return {source_->frame.width, source_->frame.height}; }

/// Returns a header with all numbers that do not depend on other parts.
CropHeader CropPacker::Source::begin(const Crop& crop) const {
  const jpeg::Component& light = frame.components.front();
  const Region& region = crop.region;
  CropHeader header;
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
  return header;
}

bool CropPacker::Source::put_rows(int component, CropHeader::Plane& plane, PartWriter& writer,
                                  Status& status) const {
  const auto rows = static_cast<std::size_t>(plane.rows);
  const auto tiles = static_cast<std::size_t>(plane.tiles);
  if (!writer.fits(rows * sizeof(std::uint32_t))) return false;
  plane.rows_at = writer.used();
  auto* const row_offsets = writer.take<std::uint32_t>(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    if (!writer.fits(tiles * sizeof(std::uint32_t))) return false;
    row_offsets[row] = writer.used();
    auto* const ends = writer.take<std::uint32_t>(tiles);
    const auto bytes = reader.tiles(component, plane.first_row + static_cast<int>(row),
                                    plane.first_tile, plane.tiles, ends);
    if (!bytes) {
      status = Status::bad("its coefficients are corrupt; pack the dataset again");
      return true;
    }
    if (!writer.fits(PartWriter::rounded(bytes->size()))) return false;
    std::memcpy(writer.take<std::uint8_t>(bytes->size()), bytes->data(), bytes->size());
  }
  return true;
}

Status CropPacker::pack(const Crop& crop, std::size_t most_scratch, std::span<std::byte> to,
                        std::size_t& bytes) {
  bytes = 0;
  check_inside(crop.region, size());
  CropHeader header = source_->begin(crop);
  PartWriter writer(to);
  const auto width = static_cast<std::int32_t>(crop.horizontal.begins.size());
  if (header.width > CropHeader::most_width || crop_scratch_bytes(header, width) > most_scratch ||
      !writer.fits(sizeof header + bytes_of(crop.horizontal) + bytes_of(crop.vertical)))
    return Status::ok();
  auto* const place = writer.take<std::byte>(sizeof header);
  header.horizontal = put_axis(crop.horizontal, writer);
  header.vertical = put_axis(crop.vertical, writer);
  Status status = Status::ok();
  for (int number = 0; number < header.components && status.is_ok(); ++number)
    if (!source_->put_rows(number, header.planes[number], writer, status)) return Status::ok();
  if (!status.is_ok()) return status;
  header.bytes = writer.used();
  new (place) CropHeader(header);
  bytes = writer.used();
  return status;
}

}  // namespace millrace
