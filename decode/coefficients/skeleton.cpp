// SPDX-License-Identifier: Apache-2.0
#include "coefficients/skeleton.h"

#include <algorithm>
#include <cstring>

namespace millrace::coefficients {
namespace {

constexpr std::uint8_t marker_prefix = 0xFF;
constexpr int end_of_image = 0xD9;

bool is_restart(int marker) { return marker >= 0xD0 && marker <= 0xD7; }
/// Returns whether a marker is SOI, TEM or a restart marker.
bool has_no_segment(int marker) { return marker == 0xD8 || marker == 0x01 || is_restart(marker); }

/// Returns the offset of the first marker after a scan's data.
std::size_t end_of_scan(std::span<const std::uint8_t> file, std::size_t at) {
  while (at + 1 < file.size()) {
    const void* const found = std::memchr(file.data() + at, marker_prefix, file.size() - 1 - at);
    if (found == nullptr) break;
    at = static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - file.data());
    if (file[at + 1] != 0 && !is_restart(file[at + 1])) return at;
    at += 2;
  }
  return file.size();
}

}  // namespace

std::optional<Segment> next_segment(std::span<const std::uint8_t> bytes, std::size_t at) {
  for (;;) {
    while (at < bytes.size() && bytes[at] != marker_prefix) ++at;
    while (at < bytes.size() && bytes[at] == marker_prefix) ++at;
    if (at >= bytes.size()) return {};
    const int marker = bytes[at++];
    if (marker == 0) continue;
    if (marker == end_of_image) return {};
    if (has_no_segment(marker)) return Segment{.marker = marker, .content = {}, .end = at};
    if (bytes.size() - at < 2) return {};
    const auto length = static_cast<std::size_t>(bytes[at] << 8 | bytes[at + 1]);
    if (length < 2 || length > bytes.size() - at) return {};
    return Segment{
        .marker = marker, .content = bytes.subspan(at + 2, length - 2), .end = at + length};
  }
}

void take_skeleton(std::span<const std::uint8_t> file, std::vector<std::uint8_t>& skeleton) {
  skeleton.clear();
  std::size_t kept = 0;
  const auto keep = [&](std::size_t end) {
    skeleton.insert(skeleton.end(), file.begin() + static_cast<std::ptrdiff_t>(kept),
                    file.begin() + static_cast<std::ptrdiff_t>(end));
  };
  for (std::size_t at = 0; const auto segment = next_segment(file, at);) {
    at = segment->end;
    if (segment->marker != start_of_scan) continue;
    keep(at);
    kept = at = end_of_scan(file, at);
  }
  keep(file.size());
}

}  // namespace millrace::coefficients
