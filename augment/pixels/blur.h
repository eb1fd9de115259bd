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

/// How many bytes `gaussian_blur` needs.
std::size_t gaussian_blur_memory(Size size, Size kernel);
/// torchvision's `functional.gaussian_blur`: the weights of a normal distribution of standard
/// deviation `sigma` at the pixels of `kernel`, whose sides are odd, in float32, rounded to levels;
/// beyond the border the image is reflected, its outermost pixels not repeated. torchvision adds up
/// the products of both axes' weights in the order that its library of convolutions takes; here
/// rows are made first, then columns of them. So levels whose exact value lies next to a half may
/// differ by 1.
void gaussian_blur(std::uint8_t* pixels, Size size, Size kernel, double sigma,
                   std::span<std::uint8_t> memory);

/// How many bytes `extended_box_blur` needs.
std::size_t extended_box_blur_memory(Size size, double radius);
/// Pillow's `ImageFilter.GaussianBlur(radius)`, to the bit: three box blurs along each axis, whose
/// outermost pixels count in part. Source: Gwosdek et al., "Theoretical Foundations of Gaussian
/// Convolution by Extended Box Filtering", 2011, and Pillow's BoxBlur.c.
void extended_box_blur(std::uint8_t* pixels, Size size, double radius,
                       std::span<std::uint8_t> memory);

}  // namespace millrace
