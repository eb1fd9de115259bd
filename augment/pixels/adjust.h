// SPDX-License-Identifier: Apache-2.0
//
// Brightness, contrast, saturation, hue and sharpness of 8-bit RGB pixels, changed in place. The
// result equals that of torchvision with Pillow, to the bit. Any thread may call these functions.
#pragma once

#include <millrace/geometry.h>

#include <cstdint>
#include <span>

namespace millrace {

enum class Property { brightness, contrast, saturation, hue };

/// A change of one property. `factor` is 0 to 1,000,000, and 1 changes nothing. It blends the pixel
/// with black, the mean grey or the pixel's own grey (`ImageEnhance.Brightness`, `Contrast` and
/// `Color`). For the hue, `factor` is instead a fraction of the circle in [-0.5, 0.5], and 0
/// changes nothing (torchvision's `functional.adjust_hue`, by Pillow's 8-bit HSV).
struct Adjustment {
  Property of;
  double factor;
};

/// Makes the adjustments one after the other. Consecutive ones share a pass; a contrast begins a
/// new one, since it needs the mean.
void adjust(std::span<std::uint8_t> pixels, std::span<const Adjustment> adjustments);
inline void adjust(std::span<std::uint8_t> pixels, Property of, double factor) {
  const Adjustment one{of, factor};
  adjust(pixels, std::span(&one, 1));
}

/// Sets red, green and blue to the luma, as `Image.convert("L")` does.
void make_grey(std::span<std::uint8_t> pixels);

/// Returns the number of bytes that `adjust_sharpness` needs.
std::size_t sharpness_memory(Size size);
/// Blends the image smoothed by `ImageFilter.SMOOTH` with the image itself, by a factor as above:
/// `ImageEnhance.Sharpness`. The outermost pixels stay unchanged. `memory` is aligned for any plain
/// type.
void adjust_sharpness(std::uint8_t* pixels, Size size, double factor,
                      std::span<std::uint8_t> memory);

}  // namespace millrace
