// SPDX-License-Identifier: Apache-2.0
//
// A seek index: from where on the MCUs of a JPEG can be decoded without those before them.
#pragma once

#include <millrace/image_decoder.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jpeg/frame.h"

namespace millrace::jpeg {

/// What the entropy stage needs to go on with an MCU.
struct SeekPoint {
  /// How many bits of the scan lie before it, stuffed zeros and markers among them. An MCU behind a
  /// restart marker begins behind that.
  std::uint64_t bit = 0;
  /// The DC coefficients before it, by component, modulo 2^16.
  std::array<std::uint16_t, 3> predictors{};

  friend bool operator==(const SeekPoint&, const SeekPoint&) = default;
};

/// The tiles of an image: each row of MCUs has them from its left end on, of `mcus` MCUs each, the
/// last one often of fewer; or each row is one. They are counted as the file has them.
struct Tiles {
  Tiles(const Frame& frame, IndexPoints points)
      : mcus(points == IndexPoints::rows ? frame.mcus_across : 8),
        row_mcus(frame.mcus_across),
        across((frame.mcus_across + mcus - 1) / mcus),
        count(std::int64_t{across} * frame.mcus_down) {}

  /// The tile that an MCU lies in.
  std::int64_t of(std::int64_t mcu) const {
    return mcu / row_mcus * across + mcu % row_mcus / mcus;
  }
  /// A tile's first MCU; of the tile behind the last one, how many MCUs there are.
  std::int64_t first_mcu(std::int64_t tile) const {
    return tile / across * row_mcus + tile % across * mcus;
  }

  int mcus;
  int row_mcus;
  int across;
  std::int64_t count;
};

/// The points of an image's tiles, from the first tile to the last that is known.
struct SeekIndex {
  IndexPoints of = IndexPoints::tiles;
  std::vector<SeekPoint> points{};

  friend bool operator==(const SeekIndex&, const SeekIndex&) = default;
};

/// Packs an index of at least one point, of the JPEG that has the checksum `jpeg`:
///     1 byte   format: 1 for points of tiles of 8 MCUs, 2 for those of rows
///     1 byte   components: 1 or 3
///     4 bytes  how many points there are, with the first one, which is all 0 and is not stored
///     8 bytes  `jpeg`
///     4 bytes  a parameter from 0 to 15 of each column: bits, then predictors by component
///     the other points, bit by bit from each byte's highest on, column by column in each: how many
///              bits more than in the point before; and the predictor's difference d from it,
///              modulo 2^16 and not below -2^15, as 2d, or -2d - 1 if d is negative. A number n is
///              a Rice code with the column's parameter k: n >> k ones (at most 23), a zero, the
///              lowest k bits of n; or 24 ones and n in 32 bits. Unused bits of the last byte are 0
///     4 bytes  the low half of the XXH3-64 of all bytes before
/// Numbers are little-endian.
void pack_index(const SeekIndex& index, int components, std::uint64_t jpeg,
                std::vector<std::byte>& packed);

/// Takes an index for `frame` from bytes that may be anything. False, and no points of what `index`
/// was of, if they are not an index of the JPEG with the checksum `jpeg`, or if no scan like this
/// one can have it.
bool unpack_index(std::span<const std::byte> packed, const Frame& frame, std::uint64_t jpeg,
                  SeekIndex& index);

}  // namespace millrace::jpeg
