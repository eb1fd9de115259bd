// SPDX-License-Identifier: Apache-2.0
//
// Weighted sums of images in float32, as torchvision's `AugMix` makes them. Any thread may call
// these functions. Images and sums have the same number of levels.
#pragma once

#include <cstdint>
#include <span>

namespace millrace {

/// Begins sums with an image.
void begin_mixture(std::span<const std::uint8_t> levels, float weight, float* sums);
void add_to_mixture(std::span<const std::uint8_t> levels, float weight, float* sums);
/// Rounds the sums down to levels.
void end_mixture(const float* sums, std::span<std::uint8_t> levels);

}  // namespace millrace
