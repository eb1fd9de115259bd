// SPDX-License-Identifier: Apache-2.0
//
// Brightness, contrast, saturation, hue and sharpness of 8-bit RGB pixels, changed in place as
// torchvision does it by Pillow, to the bit. Any thread may call these functions.
#pragma once

#include <millrace/geometry.h>

#include <cstdint>
#include <span>

namespace millrace {

enum class Property { brightness, contrast, saturation, hue };

/// A factor from 0 to 1,000,000, where 1 changes nothing: what lies between black, the mean grey,
/// or the pixel's own grey, and the pixel (`ImageEnhance.Brightness`, `Contrast` and `Color`). Of
/// the hue, a share of the circle in [-0.5, 0.5] (torchvision's `functional.adjust_hue`, by
/// Pillow's HSV of 8 bits).
struct Adjustment {
  Property of;
  double factor;
};

/// One after the other. Those that follow each other are made in one pass, but before a contrast,
/// which needs the mean.
void adjust(std::span<std::uint8_t> pixels, std::span<const Adjustment> adjustments);
inline void adjust(std::span<std::uint8_t> pixels, Property of, double factor) {
  const Adjustment one{of, factor};
  adjust(pixels, std::span(&one, 1));
}

/// Red, green and blue become the luma, as in `Image.convert("L")`.
void make_grey(std::span<std::uint8_t> pixels);

/// How many bytes `adjust_sharpness` needs.
std::size_t sharpness_memory(Size size);
/// What lies between the image smoothed by `ImageFilter.SMOOTH` and itself, by factors as above:
/// `ImageEnhance.Sharpness`. The outermost pixels stay as they are. `memory` is aligned for any
/// plain type.
void adjust_sharpness(std::uint8_t* pixels, Size size, double factor,
                      std::span<std::uint8_t> memory);

}  // namespace millrace
