// SPDX-License-Identifier: Apache-2.0
//
// Pillow's `ImageOps` of 8-bit RGB pixels, in place and to the bit: each level becomes another one,
// wherever it stands. Any thread may call these functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace millrace {

/// How often a channel has each level.
using Histogram = std::array<std::uint32_t, 256>;
/// What becomes of each level.
using Levels = std::array<std::uint8_t, 256>;

/// Of red, green and blue.
std::array<Histogram, 3> histograms(std::span<const std::uint8_t> pixels);

/// Levels that are spread so that all are about as frequent: `ImageOps.equalize`.
Levels equalized_levels(const Histogram& histogram);
/// The lowest level made 0 and the highest one 255: `ImageOps.autocontrast`.
Levels stretched_levels(const Histogram& histogram);

void equalize(std::span<std::uint8_t> pixels);
void autocontrast(std::span<std::uint8_t> pixels);
void invert(std::span<std::uint8_t> pixels);
/// Inverts the levels that are not below `threshold`.
void solarize(std::span<std::uint8_t> pixels, double threshold);
/// Keeps the highest `bits` of each level, 0 to 8.
void posterize(std::span<std::uint8_t> pixels, int bits);

}  // namespace millrace
