// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "jpeg/frame.h"
#include "jpeg/huffman.h"
#include "jpeg/libjpeg.h"

namespace millrace::jpeg {

/// One scan of a progressive JPEG (ITU-T T.81, G.1). A scan with `first` = 0 is for the DC
/// coefficients of some components, any other one for the AC coefficients of one component.
struct ProgressiveScan {
  int component_count = 0;
  std::array<int, 3> components{};
  /// First and last zigzag index of the scan's coefficients (Ss, Se).
  int first = 0;
  int last = 0;
  /// The lowest bit of the coefficients that the scan codes (Al). A refinement adds this bit alone.
  int low_bit = 0;
  bool refines = false;
  /// Indices in `Script::codes`: the DC codes of the scan's components, or the one AC code.
  std::array<std::size_t, 3> codes{};
  /// MCUs between two restart markers; 0 = no restart markers.
  int restart_interval = 0;
  /// Offset of the first byte of entropy-coded data in `Frame::scan`, and the marker after the last
  /// one.
  std::size_t offset = 0;
  int end_marker = 0;

  bool is_dc() const { return first == 0; }
};

/// All scans of a progressive JPEG.
struct Script {
  std::vector<ProgressiveScan> scans;
  std::vector<HuffmanCode> codes;
  /// Number of low bits of AC coefficients that refinements add.
  int refined_bit_count = 0;
};

/// Reads the headers of all scans, up to EOI, of a progressive JPEG whose header libjpeg has read
/// up to its first scan. Returns false for a script that our own stages do not decode:
/// - libjpeg would warn of it, or refuse it
/// - it leaves out bits of coefficients, so that libjpeg smooths between blocks
/// - there are more than `Libjpeg::max_scans` scans, or together they exceed `max_scan_pixels`
/// - a segment other than DHT and DRI, or any other byte, lies between scans
bool read_script(const jpeg_decompress_struct& image, const Frame& frame,
                 std::uint64_t max_scan_pixels, Script& script);

}  // namespace millrace::jpeg
