// SPDX-License-Identifier: Apache-2.0
//
// The self-check of the vector code that changes pixels. `pixel_passes` runs it.
#pragma once

#include <cstdint>

namespace millrace {

/// Returns the XXH3-64 of generated pixels after each adjustment and blur, with the instruction set
/// that Highway chooses now.
std::uint64_t pixels_checksum();

/// The checksum's value with every instruction set, and with plain code.
inline constexpr std::uint64_t right_pixels_checksum = 0xdedef0f7c3b21028;

}  // namespace millrace
