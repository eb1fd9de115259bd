// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/resample.h>

namespace millrace {

/// The number of rows that the horizontal pass takes at a time.
inline constexpr std::size_t pass_rows = 8;

/// Returns the number of bytes that the horizontal pass reads for a pixel, from the source pixel of
/// its first weight on.
inline std::size_t pass_reach(const PackedAxis& axis) {
  return 16 + 12 * (static_cast<std::size_t>(axis.pairs + 1) / 2 - 1);
}

/// Makes `axis.count` RGB pixels of each of `count` rows; `count` is at most `pass_rows`. For each
/// pixel it reads `pass_reach` bytes of the row, also beyond the row's end.
void horizontal_pass(const PackedAxis& axis, const std::uint8_t* const* rows,
                     std::uint8_t* const* made, std::size_t count);

/// Makes one row: the weighted sum of the 2 x `pairs` rows in `rows`, with one pixel's weights of a
/// `PackedAxis`.
void vertical_pass(const std::int32_t* weights, int pairs, const std::uint8_t* const* rows,
                   std::uint8_t* made, std::size_t bytes);

}  // namespace millrace
