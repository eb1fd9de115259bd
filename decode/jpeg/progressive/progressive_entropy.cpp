// SPDX-License-Identifier: Apache-2.0
#include "jpeg/progressive/progressive_entropy.h"

#include <algorithm>
#include <ranges>

namespace millrace::jpeg {

bool ProgressiveEntropyDecoder::decode(const Frame& frame, const Script& script,
                                       ProgressiveCoefficients& coefficients, SeekIndex* index) {
  frame_ = &frame;
  coefficients_ = &coefficients;
  index_ = index;
  scans_ = script.scans.size();
  const int end_row = coefficients.box().end_row;
  first_recorded_row_ =
      index != nullptr ? static_cast<int>(index->points.size() / scans_) : end_row;
  recorded_points_.resize(scans_ *
                          static_cast<std::size_t>(std::max(end_row - first_recorded_row_, 0)));
  for (std::size_t number = 0; number < scans_; ++number) {
    const ProgressiveScan& scan = script.scans[number];
    if (!set_tables(script, scan) || !decode_scan(scan, number)) return false;
  }
  if (index != nullptr)
    index->points.insert(index->points.end(), recorded_points_.begin(), recorded_points_.end());
  return true;
}

bool ProgressiveEntropyDecoder::set_tables(const Script& script, const ProgressiveScan& scan) {
  if (!scan.is_dc()) {
    const HuffmanCode& code = script.codes[scan.codes.front()];
    return scan.refines ? refinement_table_.set(code) : first_table_.set(code, scan.low_bit);
  }
  for (std::size_t n = 0; !scan.refines && n < static_cast<std::size_t>(scan.component_count); ++n)
    if (!dc_tables_[n].set(script.codes[scan.codes[n]])) return false;
  return true;
}

ProgressiveEntropyDecoder::Extent ProgressiveEntropyDecoder::extent_of(
    const ProgressiveScan& scan) const {
  if (scan.component_count == 1) {
    const ProgressiveBlocks& blocks = (*coefficients_)[scan.components.front()];
    const auto across = static_cast<std::size_t>(blocks.across);
    const Component& component =
        frame_->components[static_cast<std::size_t>(scan.components.front())];
    return {across, across * static_cast<std::size_t>(component.down),
            across * static_cast<std::size_t>(blocks.down - blocks.start), blocks.needed};
  }
  const McuBox& box = coefficients_->box();
  const auto across = static_cast<std::size_t>(frame_->mcus_across);
  const std::size_t all = across * static_cast<std::size_t>(frame_->mcus_down - box.start_row);
  const bool has_end = box.end_row == frame_->mcus_down;
  return {across, across, all,
          has_end ? all
                  : across * static_cast<std::size_t>(box.end_row - box.start_row - 1) +
                        static_cast<std::size_t>(box.end_column)};
}

/// Begins to read at a point of the start row. Returns false for one outside the file.
bool ProgressiveEntropyDecoder::seek(const ProgressiveScan& scan, const SeekPoint& point) {
  const std::size_t offset = scan.offset + point.bit / 8;
  if (offset >= frame_->scan.size()) return false;
  bytes_.begin(frame_->scan, offset, ScanBytes::window_bytes, !recorded_points_.empty());
  const std::uint8_t* const first = bytes_.first();
  const auto used = static_cast<unsigned>(point.bit % 8);
  bits_ = {std::uint64_t{*first} << (56 + used), first + 1, 8 - used};
  band_.block = 0;
  band_.run = point.run;
  for (std::size_t n = 0; n < predictors_.size(); ++n)
    predictors_[n] = static_cast<std::uint32_t>(static_cast<std::int16_t>(point.predictors[n]));
  return true;
}

bool ProgressiveEntropyDecoder::decode_scan(const ProgressiveScan& scan, std::size_t number) {
  const Extent extent = extent_of(scan);
  const auto start_row = static_cast<std::size_t>(coefficients_->box().start_row);
  if (!seek(scan, start_row > 0 ? index_->points[start_row * scans_ + number] : SeekPoint{}))
    return false;
  const std::size_t interval =
      scan.restart_interval > 0 ? static_cast<std::size_t>(scan.restart_interval) : extent.all;
  int next_restart = 0;
  for (std::size_t begin = 0;; begin += interval) {
    const std::size_t end = std::min(begin + interval, extent.all);
    const std::size_t to = std::min(end, extent.needed);
    if (!decode_rows(scan, number, extent, begin, to) || band_.run > end - to ||
        bytes_.bits_left(bits_.next) + static_cast<std::ptrdiff_t>(bits_.count & 63) < 0)
      return false;
    if (to < end) return true;
    const int marker = end == extent.all ? scan.end_marker : first_restart + next_restart;
    if (bytes_.stray_before(marker, bits_.next, bits_.count & 63) != std::size_t{0}) return false;
    if (end == extent.all || end == extent.needed) return true;
    bytes_.pass_marker();
    bits_ = {0, bytes_.first(), 0};
    band_.run = 0;
    predictors_ = {};
    next_restart = (next_restart + 1) % 8;
  }
}

/// Decodes MCUs, and records the points of their rows that the index lacks. If the index lacks any
/// of them, `from` must be 0.
bool ProgressiveEntropyDecoder::decode_rows(const ProgressiveScan& scan, std::size_t number,
                                            const Extent& extent, std::size_t from,
                                            std::size_t to) {
  const McuBox& box = coefficients_->box();
  for (int row = first_recorded_row_; row < box.end_row; ++row) {
    const std::size_t begin = extent.row * static_cast<std::size_t>(row - box.start_row);
    if (!decode_mcus(scan, extent.across, from, begin)) return false;
    recorded_points_[static_cast<std::size_t>(row - first_recorded_row_) * scans_ + number] =
        point_in(scan);
    from = begin;
  }
  return decode_mcus(scan, extent.across, from, to);
}

/// Returns the point of the next MCU.
SeekPoint ProgressiveEntropyDecoder::point_in(const ProgressiveScan& scan) {
  const std::uint64_t place = 8 * bytes_.place_of(bits_.next) - (bits_.count & 63);
  SeekPoint point{.bit = 8 * (bytes_.offset_of(place / 8) - scan.offset) + place % 8,
                  .run = static_cast<std::uint16_t>(band_.run)};
  for (std::size_t n = 0; n < predictors_.size(); ++n)
    point.predictors[n] = static_cast<std::uint16_t>(predictors_[n]);
  return point;
}

bool ProgressiveEntropyDecoder::decode_mcus(const ProgressiveScan& scan, std::size_t across,
                                            std::size_t from, std::size_t to) {
  return scan.is_dc() ? decode_dc_mcus(scan, across, from, to) : decode_band(scan, to);
}

bool ProgressiveEntropyDecoder::decode_band(const ProgressiveScan& scan, std::size_t to) {
  const ProgressiveBlocks& blocks = (*coefficients_)[scan.components.front()];
  band_.bytes = &bytes_;
  band_.bits = bits_;
  band_.end = to;
  band_.first = static_cast<std::uint32_t>(scan.first);
  band_.last = static_cast<std::uint32_t>(scan.last);
  band_.low_bit = scan.low_bit;
  band_.masks = blocks.masks;
  band_.masks_per_block = coefficients_->masks_per_block();
  band_.values = blocks.values;
  band_.slots = blocks.slots;
  band_.first_table = &first_table_;
  band_.refinement_table = &refinement_table_;
  const bool sound = scan.refines ? refine(band_) : decode_first(band_);
  bits_ = band_.bits;
  return sound;
}

bool ProgressiveEntropyDecoder::decode_dc_mcus(const ProgressiveScan& scan, std::size_t across,
                                               std::size_t from, std::size_t to) {
  dc_.bytes = &bytes_;
  dc_.bits = bits_;
  dc_.low_bit = scan.low_bit;
  for (std::size_t mcu = from; mcu < to;) {
    const std::size_t column = mcu % across;
    const std::size_t count = std::min(across - column, to - mcu);
    place_blocks(scan, mcu / across, column);
    if (!(scan.refines ? refine_dc : decode_dc)(dc_, static_cast<int>(count))) return false;
    mcu += count;
  }
  bits_ = dc_.bits;
  return true;
}

void ProgressiveEntropyDecoder::place_blocks(const ProgressiveScan& scan, std::size_t row,
                                             std::size_t column) {
  DcScan::Block* block = dc_.blocks.data();
  for (std::size_t n = 0; n < static_cast<std::size_t>(scan.component_count); ++n) {
    const int number = scan.components[n];
    const ProgressiveBlocks& blocks = (*coefficients_)[number];
    const Component& component = frame_->components[static_cast<std::size_t>(number)];
    const bool alone = scan.component_count == 1;
    const std::size_t across = alone ? 1 : static_cast<std::size_t>(component.across);
    const std::size_t down = alone ? 1 : static_cast<std::size_t>(component.down);
    for (std::size_t y = 0; y < down; ++y)
      for (std::size_t x = 0; x < across; ++x)
        *block++ = {.value = blocks.dc + (row * down + y) * blocks.dc_stride + column * across + x,
                    .step = static_cast<std::ptrdiff_t>(across),
                    .predictor = &predictors_[n],
                    .table = &dc_tables_[n]};
  }
  dc_.block_count = static_cast<int>(block - dc_.blocks.data());
}

}  // namespace millrace::jpeg
