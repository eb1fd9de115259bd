// SPDX-License-Identifier: Apache-2.0
//
// The entropy-coded data of a packed crop of a JPEG (`CropWork`). It is for code that implements
// `Device`; trainers do not need it.
#pragma once

#include <millrace/detail/export.h>

#include <cstdint>

namespace MILLRACE_API millrace {

/// The part of a `CropHeader` that describes the scan of a baseline JPEG. The members `..._at` are
/// offsets in bytes from the start of the `CropHeader`. The packer has checked all numbers and the
/// Huffman codes. The scan's bytes are untrusted.
struct CropScan {
  /// A Huffman code as in the file: the number of codes of each length (1 to 16 bits), and their
  /// symbols.
  struct Code {
    std::uint8_t counts[16] = {};
    std::uint8_t symbols[256] = {};
  };

  /// Adjacent MCUs of one row that can be decoded without the MCUs before them.
  struct Segment {
    /// Position at which the last MCU must end. `at_point`: exactly at `end_bit`, which is a point
    /// of the seek index; the predictors there must equal `end_predictors`. `at_marker`: at most 7
    /// bits before `end_bit`. In the file a restart marker or the end-of-image marker follows at
    /// `end_bit`. `unknown`: at `end_bit` or before it.
    enum class End : std::uint16_t { at_point, at_marker, unknown };

    /// Offsets of the segment's start and end, in bits from the first word at `words_at`.
    std::uint32_t begin_bit = 0;
    std::uint32_t end_bit = 0;
    /// DC predictors of each component at the segment's start and end, modulo 2^16.
    std::uint16_t begin_predictors[3] = {};
    std::uint16_t end_predictors[3] = {};
    /// Column and row, in the image, of the segment's first MCU; and the segment's number of MCUs.
    std::uint16_t mcu_x = 0;
    std::uint16_t mcu_y = 0;
    std::uint16_t mcus = 0;
    End end = End::at_point;
  };

  static constexpr std::int32_t max_codes = 4;

  /// Number of segments. 0 = the crop has tiles of stored coefficients instead of a scan.
  std::int32_t segment_count = 0;
  /// Offset of the segments, which are sorted by length in bits, longest first.
  std::uint32_t segments_at = 0;
  std::int32_t code_count = 0;
  std::uint32_t codes_at = 0;
  /// Indices of each component's codes in the list at `codes_at`.
  std::uint8_t dc_codes[3] = {};
  std::uint8_t ac_codes[3] = {};
  /// Number and offset of the 4-byte words that hold the scan's bytes. The words contain neither
  /// the markers of the file nor the zeros after its FF bytes.
  std::uint32_t word_count = 0;
  std::uint32_t words_at = 0;
};

}  // namespace millrace
