// SPDX-License-Identifier: Apache-2.0
//
// The expansion of tiles with AVX-512 VBMI2, whose instructions Highway does not offer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coefficients/tile.h"

#ifdef __x86_64__

namespace millrace::coefficients {

/// Returns whether the instruction set that Highway chooses includes VBMI2.
bool has_vbmi2();

/// Does what `expand_tile` does.
std::size_t expand_tile_vbmi2(const std::uint8_t* tile, const TileBlocks& blocks);

}  // namespace millrace::coefficients

#endif
