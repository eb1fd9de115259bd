// SPDX-License-Identifier: Apache-2.0
#include "crops/scan_segments.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "jpeg/scan_bytes.h"

namespace millrace::crops {
namespace {

constexpr std::uint8_t marker_byte = 0xFF;
constexpr int end_of_image_marker = 0xD9;

}  // namespace

void ScanCopy::begin(std::span<const std::uint8_t> scan) {
  constexpr std::size_t max_kept_words = std::size_t{1} << 20U;
  if (words_.size() > max_kept_words) words_ = std::vector<std::uint32_t>();
  scan_ = scan;
  read_ = written_ = 0;
}

void ScanCopy::put(const std::uint8_t* from, std::size_t count) {
  const std::size_t needed = (written_ + count) / sizeof(std::uint32_t) + 1;
  if (needed > words_.size()) words_.resize(std::max(needed, 2 * words_.size()));
  std::memcpy(reinterpret_cast<std::uint8_t*>(words_.data()) + written_, from, count);
  written_ += count;
}

std::span<const std::uint32_t> ScanCopy::words() {
  constexpr std::uint8_t zeros[sizeof(std::uint32_t)] = {};
  const std::size_t bytes = written_;
  put(zeros, -bytes % sizeof zeros);
  return {words_.data(), std::exchange(written_, bytes) / sizeof zeros};
}

/// Copies up to byte `end`, or to the FF of the first marker before it.
ScanCopy::Stop ScanCopy::run(std::size_t end) {
  while (read_ < end) {
    const std::uint8_t* const from = scan_.data() + read_;
    const void* const found = std::memchr(from, marker_byte, end - read_);
    const std::size_t plain =
        found == nullptr ? end - read_
                         : static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - from);
    put(from, plain);
    read_ += plain;
    if (found == nullptr) break;
    if (read_ + 1 >= scan_.size()) return Stop::other;
    if (scan_[read_ + 1] != 0) return Stop::marker;
    put(&marker_byte, 1);
    read_ += 2;
  }
  return read_ == end ? Stop::end : Stop::other;
}

bool ScanCopy::copy_to(std::size_t end) { return end <= scan_.size() && run(end) == Stop::end; }

bool ScanCopy::copy_to_marker(int marker) {
  if (run(scan_.size()) != Stop::marker || scan_[read_ + 1] != marker) return false;
  read_ += 2;
  return true;
}

bool ScanCopy::copy_byte() {
  if (read_ >= scan_.size()) return false;
  const bool stuffed = scan_[read_] == marker_byte;
  if (stuffed && (read_ + 1 >= scan_.size() || scan_[read_ + 1] != 0)) return false;
  put(&scan_[read_], 1);
  read_ += stuffed ? 2 : 1;
  return true;
}

void ScanCopy::copy_some(std::size_t most) {
  static_cast<void>(run(std::min(read_ + most, scan_.size())));
}

void ScanSegments::begin(const jpeg::Frame& frame, const jpeg::SeekIndex& index) {
  frame_ = &frame;
  index_ = &index;
  copy_.begin(frame.scan);
  segments_.clear();
}

bool ScanSegments::add(int mcu_row, int first, int last) {
  const jpeg::Tiles tiles(*frame_, index_->granularity);
  const std::int64_t row = std::int64_t{mcu_row} * tiles.row_mcus;
  const std::int64_t first_tile = tiles.of(row + first);
  const std::int64_t last_tile = tiles.of(row + last);
  if (!knows(last_tile)) return false;
  const jpeg::SeekPoint& point = index_->points[static_cast<std::size_t>(first_tile)];
  copy_.seek(point.bit / 8);
  place_ = {8 * copy_.bytes() + point.bit % 8, point.predictors};
  for (std::int64_t tile = first_tile; tile <= last_tile; ++tile)
    if (!add_tile(tiles, tile, row + last + 1)) return false;
  // The last byte may have bits of both the segment and the next tile.
  return place_.bit % 8 == 0 || copy_.copy_byte();
}

/// Adds a tile. Restart markers divide it into segments. If its end is unknown, its MCUs up to
/// `wanted_end` are added.
bool ScanSegments::add_tile(const jpeg::Tiles& tiles, std::int64_t tile, std::int64_t wanted_end) {
  using End = CropScan::Segment::End;
  // Upper bound on the bytes of an MCU in a photograph of the highest quality.
  constexpr std::size_t max_mcu_bytes = 512;
  const std::int64_t interval = frame_->restart_interval;
  const std::int64_t end = tiles.first_mcu(tile + 1);
  const std::int64_t all = tiles.first_mcu(tiles.count);
  for (std::int64_t mcu = tiles.first_mcu(tile); mcu < end;) {
    std::int64_t stop = interval > 0 ? std::min(end, (mcu / interval + 1) * interval) : end;
    const bool at_marker = stop == all || (interval > 0 && stop % interval == 0);
    const bool is_open = !at_marker && !knows(tile + 1);
    if (is_open) stop = std::min(stop, wanted_end);
    if (mcu >= stop) return true;
    CropScan::Segment& segment = segments_.emplace_back();
    segment.begin_bit = static_cast<std::uint32_t>(place_.bit);
    std::ranges::copy(place_.predictors, segment.begin_predictors);
    segment.mcu_x = static_cast<std::uint16_t>(mcu % tiles.row_mcus);
    segment.mcu_y = static_cast<std::uint16_t>(mcu / tiles.row_mcus);
    segment.mcus = static_cast<std::uint16_t>(stop - mcu);
    if (is_open) {
      copy_.copy_some(max_mcu_bytes * segment.mcus);
      place_ = {8 * copy_.bytes(), {}};
      segment.end = End::unknown;
    } else if (at_marker) {
      if (!end_at_marker(stop == all ? 0 : stop)) return false;
      segment.end = End::at_marker;
    } else if (!end_at_point(tile + 1)) {
      return false;
    }
    segment.end_bit = static_cast<std::uint32_t>(place_.bit);
    std::ranges::copy(place_.predictors, segment.end_predictors);
    mcu = stop;
    if (is_open) return true;
  }
  // The next tile's point must be the state that a decoder reaches after this tile.
  if (segments_.back().end != End::at_marker || !knows(tile + 1)) return true;
  return index_->points[static_cast<std::size_t>(tile + 1)] ==
         jpeg::SeekPoint{.bit = std::uint64_t{8} * copy_.offset()};
}

/// Continues after the restart marker before `mcu`, or, if it is 0, after the end of the image.
bool ScanSegments::end_at_marker(std::int64_t mcu) {
  const std::int64_t number = mcu == 0 ? 0 : mcu / frame_->restart_interval - 1;
  const int marker =
      mcu == 0 ? end_of_image_marker : jpeg::first_restart + static_cast<int>(number % 8);
  if (!copy_.copy_to_marker(marker)) return false;
  place_ = {8 * copy_.bytes(), {}};
  return true;
}

/// Continues at a tile's point.
bool ScanSegments::end_at_point(std::int64_t tile) {
  const jpeg::SeekPoint& point = index_->points[static_cast<std::size_t>(tile)];
  if (!copy_.copy_to(point.bit / 8)) return false;
  place_ = {8 * copy_.bytes() + point.bit % 8, point.predictors};
  return true;
}

std::span<const CropScan::Segment> ScanSegments::sorted() {
  std::ranges::sort(segments_, [](const CropScan::Segment& a, const CropScan::Segment& b) {
    return a.end_bit - a.begin_bit > b.end_bit - b.begin_bit;
  });
  return segments_;
}

}  // namespace millrace::crops
