// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of the entropy stage of progressive JPEGs (ITU-T T.81, G.1). A loop returns false
// for data that a valid scan does not have.
//
// Coefficient k of a block is bit 63 - k of a mask: so the first one is the highest bit, as in the
// order of the file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "jpeg/huffman.h"
#include "jpeg/mcus.h"
#include "jpeg/progressive/band_tables.h"
#include "jpeg/scan_bytes.h"

namespace millrace::jpeg {

/// The masks of a block: `nonzero`, `negative` for the coefficients that refinements added, and
/// from `planes` on one for each refined bit.
struct BlockMasks {
  static constexpr std::size_t nonzero = 0;
  static constexpr std::size_t negative = 1;
  static constexpr std::size_t planes = 2;
};

/// Position in a scan of AC coefficients, and the coefficients that it decodes.
struct BandScan {
  ScanBytes* bytes = nullptr;
  ScanBits bits;
  /// The next block, and the block at which the loop stops. Blocks of the component are counted row
  /// by row.
  std::size_t block = 0;
  std::size_t end = 0;
  /// Number of blocks from `block` on that an end of band covers.
  std::uint32_t run = 0;
  /// First and last zigzag index.
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  int low_bit = 0;
  /// `masks_per_block` masks of each block.
  std::uint64_t* masks = nullptr;
  std::size_t masks_per_block = 0;
  /// The values of first scans: coefficient k of block b is at 64 `slots[b]` + 63 - k.
  std::int16_t* values = nullptr;
  const std::uint32_t* slots = nullptr;
  const FirstTable* first_table = nullptr;
  const RefinementTable* refinement_table = nullptr;
};

/// Decodes blocks of a first scan.
bool decode_first(BandScan& scan);
/// Decodes blocks of a refinement.
bool refine(BandScan& scan);

/// Position in a scan of DC coefficients.
struct DcScan {
  /// One block of each MCU.
  struct Block {
    /// The coefficient in the next MCU, and the distance to that of the MCU after it.
    std::int16_t* value = nullptr;
    std::ptrdiff_t step = 0;
    std::uint32_t* predictor = nullptr;
    const DcTable* table = nullptr;
  };

  ScanBytes* bytes = nullptr;
  ScanBits bits;
  int block_count = 0;
  std::array<Block, 6> blocks;
  int low_bit = 0;
};

/// Decodes the first scan's coefficients of the next MCUs of one row.
bool decode_dc(DcScan& scan, int mcus);
/// Decodes a refinement of the next MCUs of one row.
bool refine_dc(DcScan& scan, int mcus);

}  // namespace millrace::jpeg
