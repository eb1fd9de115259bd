// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jpeg/huffman.h"
#include "jpeg/libjpeg.h"

namespace millrace::jpeg {

/// The side of a block, in samples.
inline constexpr int block_side = 8;

/// One component of a frame.
struct Component {
  /// Blocks of the component in an MCU: 2 across and 2 down for the luminance of 4:2:0.
  int across = 1;
  int down = 1;
  /// The quantisation table's steps, row by row; each is at most 255.
  std::array<std::uint16_t, 64> steps{};
  int dc_table = 0;
  int ac_table = 0;
};

/// The properties of a JPEG that our own stages decode, from its header. It is a baseline JPEG of
/// one scan, or a progressive one. It has 1 component (grey) or 3 (YCbCr). The first component may
/// have twice the others' resolution across and down.
struct Frame {
  int width = 0;
  int height = 0;
  int component_count = 0;
  std::array<Component, 3> components{};
  /// MCUs of the whole image.
  int mcus_across = 0;
  int mcus_down = 0;
  /// Sets the numbers of MCUs from the size and the first component's blocks.
  void count_mcus() {
    const int mcu_width = block_side * components.front().across;
    const int mcu_height = block_side * components.front().down;
    mcus_across = (width + mcu_width - 1) / mcu_width;
    mcus_down = (height + mcu_height - 1) / mcu_height;
  }
  /// MCUs between two restart markers; 0 = no restart markers.
  int restart_interval = 0;
  /// Returns whether each row of MCUs has a restart marker in it or at its start, so that regions
  /// can be found by them.
  bool has_restarts_in_rows() const {
    return restart_interval > 0 && restart_interval <= mcus_across;
  }
  /// The Huffman codes of a baseline JPEG, indexed by their numbers in the file.
  std::array<HuffmanCode, 4> dc_codes{};
  std::array<HuffmanCode, 4> ac_codes{};
  /// The file from the first scan's first byte of entropy-coded data to the file's end.
  std::span<const std::uint8_t> scan;
};

/// Converts a Huffman table that libjpeg has read.
HuffmanCode code_of(const JHUFF_TBL& table);

/// Sets size, sampling and quantisation tables from a header that libjpeg has read up to its first
/// scan. The scans may be of any kind. Returns nullptr on success. If our own pixel stage does not
/// decode the JPEG, returns the name of its decoder with the reason.
const char* read_layout(const jpeg_decompress_struct& image, Frame& frame);

/// Sets the whole frame from a header that libjpeg has read up to its first scan. Returns nullptr
/// on success. If our own stages do not decode the JPEG, returns the name of its decoder with the
/// reason: "libjpeg-turbo (arithmetic coding)".
const char* read_frame(const jpeg_decompress_struct& image, Frame& frame);

}  // namespace millrace::jpeg
