// SPDX-License-Identifier: Apache-2.0
//
// The expansion of tiles with AVX-512 VBMI2, whose instructions Highway does not offer. Call it
// only on processors that have them (`jpeg::has_vbmi2`).
#pragma once

#include <cstddef>
#include <cstdint>

#include "coefficients/tile.h"

namespace millrace::coefficients {

/// A `BytesExpansion`.
std::size_t expand_to_bytes_vbmi2(const std::uint8_t* tile, TileBytes& bytes);

/// Does what `expand_tile` does.
std::size_t expand_tile_vbmi2(const std::uint8_t* tile, const TileBlocks& blocks);

}  // namespace millrace::coefficients
