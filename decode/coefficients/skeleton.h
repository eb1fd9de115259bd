// SPDX-License-Identifier: Apache-2.0
//
// The skeleton of a JPEG file: all of its bytes except the entropy-coded data of its scans. Each
// scan's data follows the segment SOS of the scan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace millrace::coefficients {

inline constexpr int start_of_scan = 0xDA;

/// A marker with its segment.
struct Segment {
  int marker = 0;
  /// Bytes after the segment's length; empty for a marker without a segment.
  std::span<const std::uint8_t> content;
  /// Offset of the first byte after the segment.
  std::size_t end = 0;
};

/// Finds the next marker from offset `at` on, with its whole segment. nullopt at EOI, or at the end
/// of the bytes.
std::optional<Segment> next_segment(std::span<const std::uint8_t> bytes, std::size_t at);

/// Makes the skeleton of a file.
void take_skeleton(std::span<const std::uint8_t> file, std::vector<std::uint8_t>& skeleton);

}  // namespace millrace::coefficients
