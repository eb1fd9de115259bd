// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::jpeg {

/// The rows of samples below may be read, and those of pixels written, up to so many samples or
/// pixels behind their width.
inline constexpr std::size_t row_slack = 64;

/// Makes a row of `width` RGB pixels from rows of Y, Cb and Cr, as libjpeg-turbo does (JFIF 1.02's
/// equations in 16 bits of fraction), to the bit.
void ycc_to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                std::uint8_t* rgb, std::size_t width);

/// The same from a row of grey.
void grey_to_rgb(const std::uint8_t* y, std::uint8_t* rgb, std::size_t width);

}  // namespace millrace::jpeg
