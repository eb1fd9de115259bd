// SPDX-License-Identifier: Apache-2.0
#include "coefficients/file_restorer.h"

#include <array>
#include <cstddef>
#include <span>

#include "coefficients/scan_writer.h"
#include "coefficients/skeleton.h"

namespace millrace::coefficients {
namespace {

constexpr int huffman_tables = 0xC4;
constexpr int restart_interval = 0xDD;

/// The part of a file header's state on which scans depend.
class FileState {
 public:
  explicit FileState(const jpeg::Frame& frame) : frame_(frame) {}

  /// Reads a segment that precedes a scan. Returns false if it is corrupt.
  bool take(const Segment& segment) {
    switch (segment.marker) {
      case 0xC0:
      case 0xC1:
      case 0xC2:
        return take_frame(segment);
      case huffman_tables:
        return take_tables(segment.content);
      case restart_interval:
        if (segment.content.size() < 2) return false;
        restart_interval_ = segment.content[0] << 8 | segment.content[1];
        return true;
      default:
        return true;
    }
  }

  /// Reads a scan's parameters.
  bool read_scan(std::span<const std::uint8_t> content, Scan& scan) const {
    if (content.empty()) return false;
    const std::size_t count = content[0];
    if (count < 1 || count > scan.components.size() || content.size() < 4 + 2 * count) return false;
    scan.component_count = static_cast<int>(count);
    for (std::size_t n = 0; n < count; ++n) {
      Scan::Component& component = scan.components[n];
      component.number = number_of(content[1 + 2 * n]);
      const unsigned tables = content[2 + 2 * n];
      if (component.number < 0 || tables >> 4 > 3 || (tables & 15) > 3) return false;
      component.dc = &dc_codes_[tables >> 4];
      component.ac = &ac_codes_[tables & 15];
    }
    const auto rest = content.subspan(1 + 2 * count);
    scan.progressive = progressive_;
    scan.first = rest[0];
    scan.last = rest[1];
    scan.high = rest[2] >> 4;
    scan.low = rest[2] & 15;
    scan.restart_interval = restart_interval_;
    return true;
  }

 private:
  bool take_frame(const Segment& segment) {
    const auto count = static_cast<std::size_t>(frame_.component_count);
    if (segment.content.size() < 6 + 3 * count || segment.content[5] != count) return false;
    progressive_ = segment.marker == 0xC2;
    for (std::size_t n = 0; n < count; ++n) identifiers_[n] = segment.content[6 + 3 * n];
    return true;
  }

  bool take_tables(std::span<const std::uint8_t> content) {
    constexpr std::size_t counts = 16;
    while (!content.empty()) {
      const unsigned table = content[0];
      if (content.size() < 1 + counts || table >> 4 > 1 || (table & 15) > 3) return false;
      std::size_t symbols = 0;
      for (const std::uint8_t of_length : content.subspan(1, counts)) symbols += of_length;
      if (content.size() < 1 + counts + symbols) return false;
      auto& codes = table >> 4 == 0 ? dc_codes_ : ac_codes_;
      if (!codes[table & 15].set(content.subspan<1, counts>(),
                                 content.subspan(1 + counts, symbols)))
        return false;
      content = content.subspan(1 + counts + symbols);
    }
    return true;
  }

  int number_of(std::uint8_t identifier) const {
    for (int n = 0; n < frame_.component_count; ++n)
      if (identifiers_[static_cast<std::size_t>(n)] == identifier) return n;
    return -1;
  }

  const jpeg::Frame& frame_;
  std::array<SymbolCodes, 4> dc_codes_;
  std::array<SymbolCodes, 4> ac_codes_;
  std::array<std::uint8_t, 3> identifiers_{};
  bool progressive_ = false;
  int restart_interval_ = 0;
};

}  // namespace

bool restore_file(const jpeg::Frame& frame, const Coefficients& coefficients,
                  const FileParts& parts, std::vector<std::uint8_t>& file) {
  // Limits the time that a corrupt skeleton can take. Valid files do not have more scans.
  constexpr int max_scans = 200;
  const std::span<const std::uint8_t> skeleton = parts.skeleton;
  FileState state(frame);
  file.clear();
  std::size_t kept = 0;
  const auto keep = [&](std::size_t end) {
    file.insert(file.end(), skeleton.begin() + static_cast<std::ptrdiff_t>(kept),
                skeleton.begin() + static_cast<std::ptrdiff_t>(end));
    kept = end;
  };
  int scans = 0;
  for (std::size_t at = 0; const auto segment = next_segment(skeleton, at);) {
    at = segment->end;
    if (!state.take(*segment)) return false;
    if (segment->marker != start_of_scan) continue;
    keep(at);
    Scan scan{.padding = parts.padding};
    if (++scans > max_scans || !state.read_scan(segment->content, scan) ||
        !write_scan(frame, coefficients, scan, file) || file.size() > parts.bytes)
      return false;
  }
  keep(skeleton.size());
  return true;
}

}  // namespace millrace::coefficients
