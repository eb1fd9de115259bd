// SPDX-License-Identifier: Apache-2.0
//
// The expansion of tiles with AVX-512 VBMI2, whose instructions Highway does not offer. Only for
// processors that have them (`jpeg::has_vbmi2`).
#pragma once

#include <cstddef>
#include <cstdint>

#include "coefficients/tile.h"

namespace millrace::coefficients {

/// Expands a tile to bytes. Returns the tile's bytes, or 0 for a corrupt tile; the result is then
/// unspecified. `readable_tile_bytes` must be readable.
std::size_t expand_to_bytes(const std::uint8_t* tile, TileBytes& bytes);

/// Does what `expand_tile` does.
std::size_t expand_tile_vbmi2(const std::uint8_t* tile, const TileBlocks& blocks);

}  // namespace millrace::coefficients
