// SPDX-License-Identifier: Apache-2.0
//
// Two Gaussian blurs of 8-bit RGB images, in place. Any thread may call these functions. `memory`
// is aligned for any plain type.
#pragma once

#include <millrace/geometry.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace {

/// Returns the number of bytes that `gaussian_blur` needs.
std::size_t gaussian_blur_memory(Size size, Size kernel);
/// Blurs as torchvision's `functional.gaussian_blur` does. The weights are those of a normal
/// distribution of standard deviation `sigma` at the pixels of `kernel`, whose sides are odd, in
/// float32. The result is rounded to levels. Beyond the border the image is reflected, without a
/// repeat of its outermost pixels. torchvision adds up the products of both axes' weights in the
/// order of its convolution library. Here the rows are blurred first, and then the columns. So
/// levels whose exact value lies next to a half may differ by 1.
void gaussian_blur(std::uint8_t* pixels, Size size, Size kernel, double sigma,
                   std::span<std::uint8_t> memory);

/// Returns the number of bytes that `extended_box_blur` needs.
std::size_t extended_box_blur_memory(Size size, double radius);
/// Blurs as Pillow's `ImageFilter.GaussianBlur(radius)`, to the bit: three box blurs along each
/// axis. A box's outermost pixels have less weight than the others. Source: Gwosdek et al.,
/// "Theoretical Foundations of Gaussian Convolution by Extended Box Filtering", 2011, and Pillow's
/// BoxBlur.c.
void extended_box_blur(std::uint8_t* pixels, Size size, double radius,
                       std::span<std::uint8_t> memory);

}  // namespace millrace
