// SPDX-License-Identifier: Apache-2.0
//
// The passes for processors that multiply and add bytes four at a time (AVX-512 with VBMI and
// VNNI). Highway has no functions for these instructions. Each weight is split into three digits of
// 8 bits.
#pragma once

#include <millrace/detail/resample.h>

#include <cstdint>

namespace millrace {

/// Returns whether this processor has the instructions, and Highway's targets are not restricted.
bool has_vnni_passes();

/// Does what `horizontal_pass` does, for an axis whose `DigitAxis::try_arrange` returned true.
/// Reads `DigitAxis::reach` bytes of a row.
void vnni_horizontal(const DigitAxis& axis, const std::uint8_t* const* rows,
                     std::uint8_t* const* made, std::size_t count);

/// Does what `vertical_pass` does, for 4 x `quads` rows and one pixel's `DigitAxis::digits_of`.
/// `bytes` is at least 64.
void vnni_vertical(const std::uint32_t* digits, int quads, const std::uint8_t* const* rows,
                   std::uint8_t* made, std::size_t bytes);

}  // namespace millrace
