// SPDX-License-Identifier: Apache-2.0
//
// The entropy-coded data of a packed crop of a JPEG (`CropWork`). It is public for authors of
// devices; a trainer does not need it.
#pragma once

#include <millrace/detail/export.h>

#include <cstdint>

namespace MILLRACE_API millrace {

/// The part of a `CropHeader` that describes the scan of a baseline JPEG. Offsets count from the
/// header's begin. All numbers were checked when the crop was packed, the Huffman codes included.
/// The scan's bytes are untrusted.
struct CropScan {
  /// A Huffman code as in the file: the numbers of codes of 1, 2 ... 16 bits, and their symbols.
  struct Code {
    std::uint8_t counts[16] = {};
    std::uint8_t symbols[256] = {};
  };

  /// MCUs of one row that can be decoded without those before them.
  struct Segment {
    /// Place of the last MCU's end: at `end_bit`, with the end's predictors; at most 7 bits before;
    /// or anywhere before.
    enum class End : std::uint16_t { at_point, at_marker, unknown };

    /// Bits of the scan before the first MCU, and before the end.
    std::uint32_t begin_bit = 0;
    std::uint32_t end_bit = 0;
    /// The DC coefficients before the first MCU, by component, modulo 2^16, and those after the
    /// last one.
    std::uint16_t begin_predictors[3] = {};
    std::uint16_t end_predictors[3] = {};
    /// The first MCU in the image, and the number of MCUs.
    std::uint16_t mcu_x = 0;
    std::uint16_t mcu_y = 0;
    std::uint16_t mcus = 0;
    End end = End::at_point;
  };

  static constexpr std::int32_t most_codes = 4;

  /// 0: the crop has tiles of stored coefficients instead of a scan.
  std::int32_t segments = 0;
  /// The segments, those of the most bits first.
  std::uint32_t segments_at = 0;
  std::int32_t codes = 0;
  std::uint32_t codes_at = 0;
  /// By component: the numbers of its codes.
  std::uint8_t dc_codes[3] = {};
  std::uint8_t ac_codes[3] = {};
  /// The scan's bytes without the zeros that are stuffed after each FF, in words of 4 bytes.
  std::uint32_t words = 0;
  std::uint32_t words_at = 0;
};

}  // namespace millrace
