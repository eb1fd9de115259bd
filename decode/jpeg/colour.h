// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::jpeg {

/// Maximal number of samples that are read, and of pixels that are written, after a row's width.
inline constexpr std::size_t row_slack = 64;

/// Makes a row of `width` RGB pixels from rows of Y, Cb and Cr, as libjpeg-turbo does, to the bit.
/// The equations are those of JFIF 1.02 with 16 bits of fraction.
void ycc_to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                std::uint8_t* rgb, std::size_t width);

/// Does the same with AVX-512. Call it only if `has_vbmi2()`.
void ycc_to_rgb_vbmi(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                     std::uint8_t* rgb, std::size_t width);

/// Makes the same from a row of grey.
void grey_to_rgb(const std::uint8_t* y, std::uint8_t* rgb, std::size_t width);

}  // namespace millrace::jpeg
