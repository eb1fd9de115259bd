// SPDX-License-Identifier: Apache-2.0
//
// The packing of tiles with AVX-512 VBMI2.
#pragma once

#include <cstdint>

#include "coefficients/tile.h"

#ifdef __x86_64__

namespace millrace::coefficients {

/// Does what `ZigzagBlock::take` does.
void take_zigzag_vbmi2(const std::int16_t* block, ZigzagBlock& zigzag);

/// Does what `pack_tile` does after the DC coefficients.
std::uint8_t* pack_ac_vbmi2(const std::int16_t* blocks, int count, std::uint8_t* to);

}  // namespace millrace::coefficients

#endif
