// SPDX-License-Identifier: Apache-2.0
//
// Pillow's `ImageOps` for 8-bit RGB pixels, in place and to the bit. Each level is replaced by
// another one, independently of its position. Any thread may call these functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace millrace {

/// Frequency of each level of a channel.
using Histogram = std::array<std::uint32_t, 256>;
/// The new level for each level.
using Levels = std::array<std::uint8_t, 256>;

/// Returns the histograms of red, green and blue.
std::array<Histogram, 3> histograms(std::span<const std::uint8_t> pixels);

/// Returns levels that equalize the histogram: `ImageOps.equalize`.
Levels equalized_levels(const Histogram& histogram);
/// Returns levels that map the lowest level to 0 and the highest one to 255:
/// `ImageOps.autocontrast`.
Levels stretched_levels(const Histogram& histogram);

void equalize(std::span<std::uint8_t> pixels);
void autocontrast(std::span<std::uint8_t> pixels);
void invert(std::span<std::uint8_t> pixels);
/// Inverts the levels from `threshold` on.
void solarize(std::span<std::uint8_t> pixels, double threshold);
/// Keeps the highest `bits` of each level, 0 to 8.
void posterize(std::span<std::uint8_t> pixels, int bits);

}  // namespace millrace
