// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/crop_scan.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "jpeg/frame.h"
#include "jpeg/index.h"

namespace millrace::crops {

/// A copy of parts of a scan, without the zeros that are stuffed after each FF.
class ScanCopy {
 public:
  /// Begins a copy of a scan; no bytes are copied yet. The scan must outlive the following calls.
  /// The memory is reused for the next scan.
  void begin(std::span<const std::uint8_t> scan);
  /// Continues at byte `offset` of the scan.
  void seek(std::size_t offset) { read_ = offset; }
  std::size_t offset() const { return read_; }
  std::size_t bytes() const { return written_; }
  /// Returns the copied bytes. Zeros fill the last word.
  std::span<const std::uint32_t> words();

  // The following calls return false if the scan ends too early or has another marker.

  /// Copies all bytes before byte `end`, which must not be a stuffed zero.
  bool copy_to(std::size_t end);
  /// Copies all bytes before the next marker, which must be `marker`. Continues after it.
  bool copy_to_marker(int marker);
  /// Copies a byte.
  bool copy_byte();
  /// Copies about `most` bytes, or those before the next marker or the scan's end.
  void copy_some(std::size_t most);

 private:
  enum class Stop { end, marker, other };
  Stop run(std::size_t end);
  void put(const std::uint8_t* from, std::size_t count);

  std::span<const std::uint8_t> scan_;
  std::vector<std::uint32_t> words_;
  std::size_t read_ = 0;
  std::size_t written_ = 0;
};

/// The segments of a crop, and their bytes. The memory is kept for the next crop.
class ScanSegments {
 public:
  /// Begins a crop of a frame, whose scan must have less than 256 MiB. All arguments must outlive
  /// the calls of `add`.
  void begin(const jpeg::Frame& frame, const jpeg::SeekIndex& index);
  /// Adds the tiles that contain the MCUs `first` to `last` of a row of MCUs. The index must have
  /// the points of these tiles; the point after them may be missing. Returns false if the index
  /// lacks one of them, or contradicts the scan's markers.
  bool add(int mcu_row, int first, int last);

  /// Returns the bytes of all segments.
  std::span<const std::uint32_t> words() { return copy_.words(); }
  /// Returns all segments, sorted from the most to the fewest bits: the lanes of a warp then have
  /// about the same work. Call it once, after the last `add`.
  std::span<const CropScan::Segment> sorted();

 private:
  /// The state before the next MCU. `bit` is a position in the copied bytes.
  struct Place {
    std::size_t bit = 0;
    std::array<std::uint16_t, 3> predictors{};
  };

  bool knows(std::int64_t tile) const { return tile < std::ssize(index_->points); }
  bool add_tile(const jpeg::Tiles& tiles, std::int64_t tile, std::int64_t wanted_end);
  bool end_at_marker(std::int64_t mcu);
  bool end_at_point(std::int64_t tile);

  const jpeg::Frame* frame_ = nullptr;
  const jpeg::SeekIndex* index_ = nullptr;
  ScanCopy copy_;
  Place place_;
  std::vector<CropScan::Segment> segments_;
};

}  // namespace millrace::crops
