// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "coefficients/record.h"
#include "coefficients/scan_bits.h"
#include "jpeg/frame.h"

namespace millrace::coefficients {

/// The parameters of a scan, with the names of T.81.
struct Scan {
  struct Component {
    int number = 0;
    const SymbolCodes* dc = nullptr;
    const SymbolCodes* ac = nullptr;
  };
  std::array<Component, 3> components{};
  int component_count = 0;
  bool progressive = false;
  /// Ss, Se, Ah and Al.
  int first = 0;
  int last = 63;
  int high = 0;
  int low = 0;
  int restart_interval = 0;
  /// Value of the bits that fill the last byte of a scan and of a restart segment.
  bool padding = true;
};

/// Encodes a scan's coefficients with Huffman codes, as libjpeg's encoder does. Returns false if a
/// needed code is missing, or the parameters are invalid.
bool write_scan(const jpeg::Frame& frame, const Coefficients& coefficients, const Scan& scan,
                std::vector<std::uint8_t>& to);

}  // namespace millrace::coefficients
