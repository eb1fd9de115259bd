// SPDX-License-Identifier: Apache-2.0
//
// The expansion of tiles with AVX-512 VBMI2.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coefficients/tile.h"

#ifdef __x86_64__

namespace millrace::coefficients {

/// Does what `expand_tile` does.
std::size_t expand_tile_vbmi2(const std::uint8_t* tile, const TileBlocks& blocks);

}  // namespace millrace::coefficients

#endif
