// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "jpeg/coefficients.h"

namespace millrace::jpeg {

/// The parts of the coefficients of blocks side by side, as `BandScan` and `DcScan` have them. The
/// pointers are those of the first block.
struct BlockParts {
  const std::int16_t* dc = nullptr;
  const std::uint64_t* masks = nullptr;
  std::size_t masks_per_block = 0;
  const std::uint32_t* slots = nullptr;
  /// The values of slot 0.
  const std::int16_t* values = nullptr;
};

/// Adds the refined bits to the values of first scans, for `count` blocks in groups.
void sum_blocks(const BlockParts& parts, int count, BlockGroup* groups);

}  // namespace millrace::jpeg
