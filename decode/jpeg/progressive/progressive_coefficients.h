// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "codec/pixel_scratch.h"
#include "jpeg/coefficients.h"
#include "jpeg/frame.h"

namespace millrace::jpeg {

/// The MCUs whose coefficients are wanted, and the row of MCUs from which all scans are decoded.
/// `start_row` is at most `first_row`.
struct McuBox {
  int first_column = 0;
  int end_column = 0;
  int first_row = 0;
  int end_row = 0;
  int start_row = 0;
};

/// The blocks of one component while its scans are decoded. The arrays begin with the box's start
/// row.
struct ProgressiveBlocks {
  /// Blocks of the component in the image.
  int across = 0;
  int down = 0;
  /// Rows of blocks before the start row.
  int start = 0;
  /// Number of blocks from the start row to the last wanted block, row by row. If the box has the
  /// last row of MCUs, all blocks to the image's end. Later blocks of a scan are not read.
  std::size_t needed = 0;
  /// `BlockMasks` of each needed block.
  std::uint64_t* masks = nullptr;
  /// The slot of each needed block in `values`; a slot has 64 values. Slot 0 is for the blocks
  /// before and beside the box, whose values are not wanted.
  std::uint32_t* slots = nullptr;
  std::int16_t* values = nullptr;
  /// The DC coefficients of whole MCUs, row by row, `dc_stride` in a row.
  std::int16_t* dc = nullptr;
  std::size_t dc_stride = 0;
};

/// The coefficients of a progressive JPEG down to the last row of MCUs that is wanted. Blocks that
/// are not wanted have only the masks that refinements need. The memory is kept for the next image.
class ProgressiveCoefficients {
 public:
  /// Returns the maximal number of bytes of memory that an image takes.
  static std::uint64_t bytes_for(const Frame& frame, int refined_bit_count);

  /// Sets all coefficients to 0.
  void shape(const Frame& frame, int refined_bit_count, const McuBox& box);
  const McuBox& box() const { return box_; }
  const ProgressiveBlocks& operator[](int component) const {
    return components_[static_cast<std::size_t>(component)];
  }
  std::size_t masks_per_block() const { return masks_per_block_; }
  /// Copies the box's coefficients of a row of MCUs. `row` must be shaped for them. Blocks outside
  /// the image get unspecified values.
  void copy_row(const Frame& frame, int mcu_row, CoefficientRow& row) const;

  std::size_t bytes() const { return memory_.bytes(); }
  void free_memory() { memory_ = {}; }

 private:
  std::size_t masks_per_block_ = 0;
  McuBox box_;
  std::array<ProgressiveBlocks, 3> components_;
  PixelScratch memory_;
};

}  // namespace millrace::jpeg
