// SPDX-License-Identifier: Apache-2.0
//
// Weighted sums of images as torchvision's `AugMix` makes them in float32. Any thread may call
// these functions; images and sums have the same number of levels.
#pragma once

#include <cstdint>
#include <span>

namespace millrace {

/// Begins sums with an image.
void begin_mixture(std::span<const std::uint8_t> levels, float weight, float* sums);
void add_to_mixture(std::span<const std::uint8_t> levels, float weight, float* sums);
/// Sums rounded down to levels.
void end_mixture(const float* sums, std::span<std::uint8_t> levels);

}  // namespace millrace
