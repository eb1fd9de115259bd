// SPDX-License-Identifier: Apache-2.0
//
// The passes for processors that multiply and add bytes four at a time (AVX-512 with VBMI and VNNI,
// which Highway has no words for): each weight is three digits of 8 bits.
#pragma once

#include <millrace/detail/resample.h>

#include <cstdint>

namespace millrace {

/// Whether this processor has the instructions, and Highway's targets are not restricted.
bool has_digit_passes();

/// As `horizontal_pass`, of an axis for which `DigitAxis::arrange` was true. It reads
/// `DigitAxis::reach` bytes of a row.
void horizontal_digits(const DigitAxis& axis, const std::uint8_t* const* rows,
                       std::uint8_t* const* made, std::size_t count);

/// As `vertical_pass`, of 4 x `quads` rows, by `DigitAxis::digits_of` a pixel. At least 64 bytes.
void vertical_digits(const std::uint32_t* digits, int quads, const std::uint8_t* const* rows,
                     std::uint8_t* made, std::size_t bytes);

}  // namespace millrace
