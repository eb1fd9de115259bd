// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coefficients/tile.h"

namespace millrace::testing {

/// Blocks of a tile, in groups. They begin with values that an expansion must replace.
struct TileGroups {
  std::array<jpeg::BlockGroup, 2> all;

  TileGroups() {
    for (jpeg::BlockGroup& group : all) group.values.fill(77);
  }
  coefficients::TileBlocks blocks() {
    coefficients::TileBlocks blocks{};
    for (std::size_t n = 0; n < blocks.size(); ++n)
      blocks[n] = all[n / 4].values.data() + n % 4 * jpeg::block_side;
    return blocks;
  }
  friend bool operator==(const TileGroups& a, const TileGroups& b) {
    return a.all[0].values == b.all[0].values && a.all[1].values == b.all[1].values;
  }
};

/// Returns whether a tile is expanded as by plain code. `readable_tile_bytes` must be readable.
inline bool expands_as_plainly(const std::uint8_t* tile) {
  TileGroups made;
  TileGroups plain;
  const std::size_t bytes = coefficients::expand_tile(tile, made.blocks());
  return bytes == coefficients::expand_tile_plain(tile, plain.blocks()) &&
         (bytes == 0 || made == plain);
}

}  // namespace millrace::testing
