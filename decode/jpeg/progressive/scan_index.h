// SPDX-License-Identifier: Apache-2.0
//
// The seek index of a progressive JPEG: points in each scan from which its rows of MCUs can be
// decoded without those before them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jpeg/frame.h"
#include "jpeg/index.h"
#include "jpeg/progressive/script.h"

namespace millrace::jpeg {

/// Returns whether an image can have an index: it has no restart markers, at least 16 bytes of data
/// for each point, and at most `max_scan_points` points. So the points take no more memory than the
/// file, and those of a hostile file are few.
///
/// Each row of MCUs of the image has a point in each scan. In a scan of one component this is where
/// the blocks of the row of MCUs begin. The points of row r are `SeekIndex::points` from r times
/// the number of scans on, in the order of the scans. `SeekPoint::bit` counts from the scan's first
/// bit of entropy-coded data on. `SeekPoint::predictors` have the order of the components in the
/// scan's header, at the scan's low bit. The points of row 0 are all 0.
inline constexpr std::size_t max_scan_points = std::size_t{1} << 17;
bool can_have_index(const Frame& frame, const Script& script);

/// Packs an index of at least one row, for the JPEG with the checksum `jpeg`. Numbers are
/// little-endian. The format is:
///     1 byte   format: 3.
///     1 byte   the number of scans.
///     4 bytes  the number of rows. The first one is all 0 and is counted, but not stored.
///     8 bytes  `jpeg`.
///     the scans in their order, each with 5 columns: the bits, three predictors, the runs.
///     4 bytes  the low half of the XXH3-64 of all bytes before.
/// Scans are stored bit by bit from each byte's highest bit on. A column begins with 4 bits. If
/// they are 15, all its numbers are 0 and not stored. Otherwise they are the Rice parameter, and a
/// number for each row follows, coded as by `pack_index`. The column of bits holds the differences
/// from the row before, and the columns of predictors those of `pack_index`. The column of runs
/// holds the runs. Unused bits of the last byte are 0.
void pack_scan_index(const SeekIndex& index, std::size_t scans, std::uint64_t jpeg,
                     std::vector<std::byte>& packed);

/// Reads an index from untrusted bytes, for an image that can have one. Returns false if they are
/// not an index of the JPEG with the checksum `jpeg`, or if the image's scans cannot have this
/// index. `index` then has no points.
bool unpack_scan_index(std::span<const std::byte> packed, const Frame& frame, const Script& script,
                       std::uint64_t jpeg, SeekIndex& index);

}  // namespace millrace::jpeg
