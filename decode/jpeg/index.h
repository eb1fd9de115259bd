// SPDX-License-Identifier: Apache-2.0
//
// The seek index: positions from which the MCUs of a JPEG can be decoded without those before them.
#pragma once

#include <millrace/image_decoder.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jpeg/frame.h"

namespace millrace::jpeg {

/// The state that the entropy stage needs to start at an MCU.
struct SeekPoint {
  /// Bits of the scan before the MCU, including stuffed zeros and markers. An MCU after a restart
  /// marker begins after the marker.
  std::uint64_t bit = 0;
  /// The DC coefficients before the MCU, by component, modulo 2^16.
  std::array<std::uint16_t, 3> predictors{};
  /// Number of blocks from here on that an end of band covers. Only in scans of progressive JPEGs.
  std::uint16_t run = 0;

  friend bool operator==(const SeekPoint&, const SeekPoint&) = default;
};

/// The tiles of an image. Each row of MCUs is divided from its left end on into tiles of `mcus`
/// MCUs; the last one often has fewer. With `IndexPoints::rows` each row is one tile. Tiles are
/// numbered in the order of the file.
struct Tiles {
  Tiles(const Frame& frame, IndexPoints points)
      : mcus(points == IndexPoints::rows ? frame.mcus_across : 8),
        row_mcus(frame.mcus_across),
        across((frame.mcus_across + mcus - 1) / mcus),
        count(std::int64_t{across} * frame.mcus_down) {}

  /// Returns the tile that contains an MCU.
  std::int64_t of(std::int64_t mcu) const {
    return mcu / row_mcus * across + mcu % row_mcus / mcus;
  }
  /// Returns a tile's first MCU. For the tile after the last one it returns the number of MCUs.
  std::int64_t first_mcu(std::int64_t tile) const {
    return tile / across * row_mcus + tile % across * mcus;
  }

  int mcus;
  int row_mcus;
  int across;
  std::int64_t count;
};

/// The points of an image's tiles, from the first tile to the last known one. For a progressive
/// JPEG: the points of its scans (`progressive/scan_index.h`).
struct SeekIndex {
  IndexPoints granularity = IndexPoints::tiles;
  std::vector<SeekPoint> points{};

  friend bool operator==(const SeekIndex&, const SeekIndex&) = default;
};

/// Packs an index of at least one point, for the JPEG with the checksum `jpeg`. Numbers are
/// little-endian. The format is:
///     1 byte   format: 1 for points of tiles of 8 MCUs, 2 for points of rows.
///     1 byte   components: 1 or 3.
///     4 bytes  the number of points. The first one is all 0 and is counted, but not stored.
///     8 bytes  `jpeg`.
///     4 bytes  the Rice parameter of each column, 0 to 15. The columns are the bits, then the
///              predictors by component.
///     the other points, bit by bit from each byte's highest bit on, each column by column.
///     4 bytes  the low half of the XXH3-64 of all bytes before.
/// The column of bits holds the differences from the point before. The other columns hold the
/// predictor's difference d from the point before, modulo 2^16 and not below -2^15. It is stored as
/// 2d, or as -2d - 1 if d is negative. A number n is a Rice code with the column's parameter k: n
/// >> k ones (at most 23), a zero, the lowest k bits of n. A larger n is 24 ones and n in 32 bits.
/// Unused bits of the last byte are 0.
void pack_index(const SeekIndex& index, int components, std::uint64_t jpeg,
                std::vector<std::byte>& packed);

/// Reads an index for `frame` from untrusted bytes. Returns false if they are not an index of the
/// JPEG with the checksum `jpeg`, or if the frame's scan cannot have this index. `index` then has
/// no points and keeps its granularity.
bool unpack_index(std::span<const std::byte> packed, const Frame& frame, std::uint64_t jpeg,
                  SeekIndex& index);

}  // namespace millrace::jpeg
