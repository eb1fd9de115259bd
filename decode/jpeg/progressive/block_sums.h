// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "jpeg/coefficients.h"

namespace millrace::jpeg {

/// The parts of the coefficients of adjacent blocks, in the layout of `BandScan` and `DcScan`. The
/// pointers refer to the first block.
struct BlockParts {
  const std::int16_t* dc = nullptr;
  const std::uint64_t* masks = nullptr;
  std::size_t masks_per_block = 0;
  const std::uint32_t* slots = nullptr;
  /// The values of slot 0.
  const std::int16_t* values = nullptr;
};

/// Makes the coefficients of `count` blocks, in groups: adds the bits of refinements to the values
/// of first scans.
void sum_blocks(const BlockParts& parts, int count, BlockGroup* groups);

}  // namespace millrace::jpeg
