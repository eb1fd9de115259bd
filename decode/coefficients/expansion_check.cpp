// SPDX-License-Identifier: Apache-2.0
#include "coefficients/expansion_check.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "coefficients/samples.h"
#include "coefficients/tile.h"
#include "jpeg/idct.h"

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

/// Returns whether tiles from few to many coefficients, of one and of two bytes, are packed,
/// expanded and transformed as in the plain code.
bool works_rightly() {
  std::uint32_t last = 1;
  // The generator of Numerical Recipes.
  const auto number = [&last] { return (last = last * 1664525U + 1013904223U) >> 16; };
  std::array<std::uint16_t, block_values> steps{};
  for (std::uint16_t& step : steps) step = static_cast<std::uint16_t>(1 + number() % 2);
  std::array<std::int16_t, tile_blocks * block_values> blocks{};
  std::vector<std::uint8_t> tile(readable_tile_bytes);
  std::vector<std::uint8_t> plain_tile(readable_tile_bytes);
  for (unsigned every = 1; every <= 64; every *= 2)
    for (const bool is_small : {false, true}) {
      for (std::size_t n = 0; n < blocks.size(); ++n) {
        const auto any = static_cast<int>(number() % 4096) - 2048;
        // Small coefficients of the second half of the blocks are among the lowest 4 x 4.
        const bool is_left_out = is_small && n >= blocks.size() / 2 && (n & 0x24) != 0;
        const int value = number() % every != 0 || is_left_out ? 0 : any >> number() % 12;
        blocks[n] = static_cast<std::int16_t>(is_small ? value % 176 : value);
      }
      const auto bytes = static_cast<std::size_t>(
          pack_tile_plain(blocks.data(), tile_blocks, plain_tile.data()) - plain_tile.data());
      if (pack_tile(blocks.data(), tile_blocks, tile.data()) != tile.data() + bytes ||
          !std::equal(plain_tile.begin(), plain_tile.begin() + static_cast<std::ptrdiff_t>(bytes),
                      tile.begin()))
        return false;
      TileGroups made;
      TileGroups plain;
      const std::size_t read = expand_tile(tile.data(), made.blocks());
      if (read != bytes || expand_tile_plain(tile.data(), plain.blocks()) != bytes) return false;
      for (std::size_t n = 0; n < made.groups.size(); ++n)
        if (made.groups[n].values != plain.groups[n].values) return false;
      if (is_small && tile_transform().run != nullptr && !transforms_as_plainly(tile.data(), steps))
        return false;
    }
  return true;
}

}  // namespace

bool transforms_as_plainly(const std::uint8_t* tile,
                           const std::array<std::uint16_t, block_values>& steps) {
  constexpr std::size_t stride = 2 * jpeg::BlockGroup::row_values;
  using Samples = std::array<std::uint8_t, jpeg::block_side * stride>;
  Samples made{};
  TileBytes bytes;
  StepsOfBytes steps_of_bytes;
  steps_of_bytes.set(steps);
  const TileTransform transform = tile_transform();
  const std::size_t read = transform.expand(tile, bytes);
  transform.run(bytes, 0, 2, steps_of_bytes, made.data(), stride);

  Samples plain{};
  TileGroups groups;
  jpeg::StepsOfGroup steps_of_group;
  steps_of_group.set(steps);
  if (expand_tile_plain(tile, groups.blocks()) != read) return false;
  for (std::size_t n = 0; n < tile_blocks; ++n)
    jpeg::inverse_transform_plain(groups.blocks()[n], steps_of_group.values(),
                                  plain.data() + n * jpeg::block_side, stride);
  return made == plain;
}

constinit VectorCode expansion{[] { return works_rightly(); }};

}  // namespace millrace::coefficients
