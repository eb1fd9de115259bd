// SPDX-License-Identifier: Apache-2.0
//
// The inverse DCT of blocks in a warp's shared memory. Included by the kernels' headers.
#pragma once

#include <millrace/detail/block_arithmetic.h>

#include <cstddef>
#include <cstdint>

namespace millrace::kernels {

inline constexpr std::uint32_t all_lanes = 0xFFFFFFFFU;
inline constexpr unsigned values_of_block = 64;
/// Distance in int16 values from one block to the next in shared memory. It puts the blocks'
/// columns in different banks, and their rows at multiples of 16 bytes.
inline constexpr unsigned block_stride = 72;

/// Maps each zigzag index (ITU-T T.81, figure A.6), from 1 on, to the place in a block that is
/// stored row by row. The last entry belongs to the DC coefficient.
struct ZigzagTable {
  std::uint8_t places[values_of_block];
};
constexpr ZigzagTable make_zigzag() {
  ZigzagTable table{};
  int row = 0;
  int column = 0;
  for (unsigned n = 0; n < values_of_block; ++n) {
    table.places[(n + values_of_block - 1) % values_of_block] =
        static_cast<std::uint8_t>(row * 8 + column);
    const bool up = (row + column) % 2 == 0;
    if (up ? column == 7 : row < 7 && column == 0)
      ++row;
    else if (up ? row == 0 : row == 7)
      ++column;
    else {
      row += up ? -1 : 1;
      column += up ? 1 : -1;
    }
  }
  return table;
}
__device__ constexpr ZigzagTable zigzag_table = make_zigzag();

/// Transforms a column of a block. `deep` says whether the block has coefficients below its first
/// row.
__device__ inline void transform_column(std::int16_t* column, bool deep) {
  if (deep) return jpeg::transform_eight(column, 8, jpeg::idct::first_shift);
  // libjpeg-turbo's shortcut if only the column's first coefficient may be nonzero.
  const std::int16_t value = jpeg::wrapped(column[0] * (1 << jpeg::idct::kept_bits));
#pragma unroll
  for (unsigned n = 0; n < 8; ++n) column[n * 8] = value;
}

/// Transforms a row of a block to 8 samples, after the block's columns were transformed.
__device__ inline void transform_row(const std::int16_t* row, std::uint8_t* samples) {
  const uint4 stored = *reinterpret_cast<const uint4*>(row);
  const std::uint32_t pairs[] = {stored.x, stored.y, stored.z, stored.w};
  std::int16_t values[8];
#pragma unroll
  for (unsigned n = 0; n < 8; ++n)
    values[n] = static_cast<std::int16_t>(pairs[n / 2] >> (n % 2 * 16));
  jpeg::transform_eight(values, 1, jpeg::idct::second_shift);
  std::uint32_t words[2] = {};
#pragma unroll
  for (unsigned n = 0; n < 8; ++n)
    words[n / 4] |= std::uint32_t{jpeg::clamped(values[n] + 128)} << (n % 4 * 8);
  *reinterpret_cast<uint2*>(samples) = make_uint2(words[0], words[1]);
}

}  // namespace millrace::kernels
