// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/jpeg_crop_packer.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "codec/limits.h"
#include "crops/crop_parts.h"
#include "crops/scan_segments.h"
#include "jpeg/decoder/jpeg_decoder.h"
#include "jpeg/frame.h"
#include "jpeg/huffman.h"

namespace millrace {
namespace {

/// Returns whether the entropy stage accepts a code.
bool is_sound(const jpeg::HuffmanCode& code, bool of_dc) {
  jpeg::LongCodes codes;
  if (!codes.set(code)) return false;
  bool sound = true;
  if (of_dc)
    jpeg::for_each_code(code, 16, [&](unsigned, int, int symbol) {
      sound = sound && symbol <= jpeg::DcTable::max_bits;
    });
  return sound;
}

CropScan::Code packed_code(const jpeg::HuffmanCode& code) {
  CropScan::Code packed;
  std::ranges::copy(code.counts, packed.counts);
  std::size_t symbols = 0;
  for (const std::uint8_t count : code.counts) symbols += count;
  std::copy_n(code.symbols.begin(), symbols, packed.symbols);
  return packed;
}

}  // namespace

struct JpegCropPacker::Source {
  const jpeg::Frame* frame = nullptr;
  const jpeg::SeekIndex* index = nullptr;
  /// The codes that the components use, and their numbers by component.
  std::vector<CropScan::Code> codes;
  CropScan numbers;
  /// The crop that was measured.
  crops::CropParts parts;
  crops::ScanSegments segments;
  std::span<const CropScan::Segment> sorted;

  bool take_codes();
  bool take_code(const jpeg::HuffmanCode& code, bool of_dc, std::uint8_t& number);
  bool take_scan(const Region& region);
};

JpegCropPacker::JpegCropPacker() : source_(std::make_unique<Source>()) {}
JpegCropPacker::~JpegCropPacker() = default;

bool JpegCropPacker::open(ImageDecoder& decoder) {
  const auto* const jpeg = dynamic_cast<const JpegDecoder*>(decoder.interleaved());
  const jpeg::Frame* const frame = jpeg != nullptr ? jpeg->baseline() : nullptr;
  if (frame == nullptr) return false;
  const jpeg::SeekIndex& index = jpeg->index();
  if (frame->has_restarts_in_rows() &&
      std::ssize(index.points) < jpeg::Tiles(*frame, index.granularity).count)
    return false;
  source_->frame = frame;
  source_->index = &index;
  return !index.points.empty() && source_->take_codes();
}

bool JpegCropPacker::Source::take_codes() {
  codes.clear();
  numbers = {};
  for (std::size_t n = 0; n < static_cast<std::size_t>(frame->component_count); ++n) {
    const jpeg::Component& component = frame->components[n];
    if (!take_code(frame->dc_codes[static_cast<std::size_t>(component.dc_table)], true,
                   numbers.dc_codes[n]) ||
        !take_code(frame->ac_codes[static_cast<std::size_t>(component.ac_table)], false,
                   numbers.ac_codes[n]))
      return false;
  }
  return true;
}

bool JpegCropPacker::Source::take_code(const jpeg::HuffmanCode& code, bool of_dc,
                                       std::uint8_t& number) {
  if (!is_sound(code, of_dc)) return false;
  const CropScan::Code packed = packed_code(code);
  const auto same = [&](const CropScan::Code& other) {
    return std::memcmp(&packed, &other, sizeof packed) == 0;
  };
  const auto found = std::ranges::find_if(codes, same);
  number = static_cast<std::uint8_t>(found - codes.begin());
  if (found != codes.end()) return true;
  codes.push_back(packed);
  return codes.size() <= static_cast<std::size_t>(CropScan::max_codes);
}

/// Copies and measures the scan. Returns false if a packed crop cannot hold it.
bool JpegCropPacker::Source::take_scan(const Region& region) {
  segments.begin(*frame, *index);
  const crops::McuRanges mcus = crops::mcus_for(*frame, region);
  for (int row = mcus.rows.first; row <= mcus.rows.last; ++row) {
    // In the image's last row, a decoder reads to the end of the image.
    const int last = row == frame->mcus_down - 1 ? frame->mcus_across - 1 : mcus.columns.last;
    if (!segments.add(row, mcus.columns.first, last)) return false;
  }
  sorted = segments.sorted();
  CropScan& scan = parts.header.scan;
  scan = numbers;
  scan.code_count = static_cast<std::int32_t>(codes.size());
  scan.codes_at = parts.take(codes.size() * sizeof(CropScan::Code));
  scan.segment_count = static_cast<std::int32_t>(sorted.size());
  scan.segments_at = parts.take(sorted.size_bytes());
  scan.word_count = static_cast<std::uint32_t>(segments.words().size());
  scan.words_at = parts.take(segments.words().size_bytes());
  return true;
}

std::size_t JpegCropPacker::measure(const Crop& crop, std::size_t max_scratch) {
  Source& source = *source_;
  constexpr std::size_t max_bytes = std::size_t{1} << 28U;
  check_inside(crop.region, {source.frame->width, source.frame->height});
  const bool fits = source.frame->scan.size() < max_bytes &&
                    source.parts.begin(*source.frame, crop, max_scratch) &&
                    source.take_scan(crop.region);
  return fits ? source.parts.bytes() : 0;
}

std::size_t JpegCropPacker::scratch_bytes() const { return source_->parts.scratch_bytes(); }

void JpegCropPacker::pack(std::byte* to) const {
  using crops::put;
  const CropScan& scan = source_->parts.header.scan;
  source_->parts.put(to);
  put(std::span<const CropScan::Code>(source_->codes), to, scan.codes_at);
  put(source_->sorted, to, scan.segments_at);
  put(source_->segments.words(), to, scan.words_at);
}

}  // namespace millrace
