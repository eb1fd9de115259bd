// SPDX-License-Identifier: Apache-2.0
#include "coefficients/expansion_check.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "coefficients/tile.h"

namespace millrace::coefficients {
namespace {

/// Blocks of a tile, in groups.
struct TileGroups {
  std::array<jpeg::BlockGroup, 2> groups{};

  TileBlocks blocks() {
    TileBlocks all{};
    for (std::size_t n = 0; n < all.size(); ++n)
      all[n] = groups[n / 4].values.data() + n % 4 * jpeg::block_side;
    return all;
  }
};

/// Returns whether tiles from few to many coefficients, of one and of two bytes, are packed and
/// expanded as in the plain code.
bool works_rightly() {
  std::uint32_t last = 1;
  // The generator of Numerical Recipes.
  const auto number = [&last] { return (last = last * 1664525U + 1013904223U) >> 16; };
  std::array<std::int16_t, tile_blocks * block_values> blocks{};
  std::vector<std::uint8_t> tile(readable_tile_bytes);
  std::vector<std::uint8_t> plain_tile(readable_tile_bytes);
  for (unsigned every = 1; every <= 64; every *= 2) {
    for (std::int16_t& value : blocks) {
      const auto any = static_cast<int>(number() % 4096) - 2048;
      value = static_cast<std::int16_t>(number() % every != 0 ? 0 : any >> number() % 12);
    }
    const auto bytes =
        static_cast<std::size_t>(pack_tile(blocks.data(), tile_blocks, tile.data()) - tile.data());
    if (pack_tile_plain(blocks.data(), tile_blocks, plain_tile.data()) !=
            plain_tile.data() + bytes ||
        !std::equal(tile.begin(), tile.begin() + static_cast<std::ptrdiff_t>(bytes),
                    plain_tile.begin()))
      return false;
    TileGroups made;
    TileGroups plain;
    const std::size_t read = expand_tile(tile.data(), made.blocks());
    if (read != bytes || expand_tile_plain(tile.data(), plain.blocks()) != bytes) return false;
    for (std::size_t n = 0; n < made.groups.size(); ++n)
      if (made.groups[n].values != plain.groups[n].values) return false;
  }
  return true;
}

}  // namespace

constinit VectorCode expansion{[] { return works_rightly(); }};

}  // namespace millrace::coefficients
