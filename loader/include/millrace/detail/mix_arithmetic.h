// SPDX-License-Identifier: Apache-2.0
//
// Integer arithmetic of pixels that are erased or mixed. The host and CUDA kernels (compiled by
// nvcc) use the same functions.
#pragma once

#include <millrace/detail/pixel_arithmetic.h>

#include <cstdint>

namespace millrace {

/// Whether (x, y) lies in a box. `box` begins with the box's x, y, width and height.
MILLRACE_HOST_DEVICE inline bool lies_in(const std::int32_t* box, std::int32_t x, std::int32_t y) {
  return x >= box[0] && x - box[0] < box[2] && y >= box[1] && y - box[1] < box[3];
}

MILLRACE_HOST_DEVICE inline std::uint8_t mixed(std::uint8_t own, std::uint8_t other,
                                               std::uint16_t weight) {
  const auto sum = static_cast<std::uint16_t>(own * weight + other * (256 - weight) + 128);
  return static_cast<std::uint8_t>(sum >> 8U);
}

/// Whether a sample's five numbers (`MixWork::mixes`) leave its image unchanged.
MILLRACE_HOST_DEVICE inline bool unmixed(const std::int32_t* mix) {
  return mix[0] == 256 && mix[3] == 0;
}

}  // namespace millrace
