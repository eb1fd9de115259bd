// SPDX-License-Identifier: Apache-2.0
//
// The expansion of tiles on every instruction set, compared with its plain form.
#include "coefficients/tile.h"

#include <gtest/gtest.h>
#include <millrace/random.h>

#include <algorithm>
#include <array>
#include <vector>

#include "augment/resample/vector_targets.h"

namespace millrace::coefficients {
namespace {

using testing::name_of;
using testing::OnTarget;
using testing::vector_targets;

/// Blocks of a tile, in groups. They begin with values that an expansion must replace.
struct Groups {
  std::array<jpeg::BlockGroup, 2> all;

  Groups() {
    for (jpeg::BlockGroup& group : all) group.values.fill(77);
  }
  TileBlocks blocks() {
    TileBlocks blocks{};
    for (std::size_t n = 0; n < blocks.size(); ++n)
      blocks[n] = all[n / 4].values.data() + n % 4 * jpeg::block_side;
    return blocks;
  }
  friend bool operator==(const Groups& a, const Groups& b) {
    return a.all[0].values == b.all[0].values && a.all[1].values == b.all[1].values;
  }
};

/// Returns a tile's memory, of which all bytes that an expansion may read exist.
std::vector<std::uint8_t> readable(std::vector<std::uint8_t> tile) {
  tile.resize(readable_tile_bytes, 0xA5);
  return tile;
}

TEST(Tile, IsExpandedAsInPlainCodeOnEveryInstructionSet) {
  Random random(1, 0);
  std::array<std::int16_t, tile_blocks * block_values> values;
  for (int n = 0; n < 400; ++n) {
    const unsigned every = 1U << n % 7;
    const unsigned shift = static_cast<unsigned>(n) % 13;
    for (std::int16_t& value : values) {
      const auto any = static_cast<int>(random() % 8192) - 4096;
      value = static_cast<std::int16_t>(random() % every == 0 ? any >> shift : 0);
    }
    std::vector<std::uint8_t> tile;
    pack_tile(values.data(), tile_blocks, tile);
    const std::size_t bytes = tile.size();
    tile = readable(std::move(tile));
    Groups plain;
    ASSERT_EQ(expand_tile_plain(tile.data(), plain.blocks()), bytes);
    const TileBlocks blocks = plain.blocks();
    for (std::size_t at = 0; at < values.size(); ++at) {
      const std::size_t row = at % block_values / 8, column = at % 8;
      ASSERT_EQ(blocks[at / block_values][row * jpeg::BlockGroup::row_values + column], values[at]);
    }
    for (const std::int64_t target : vector_targets()) {
      SCOPED_TRACE(name_of(target));
      const OnTarget on(target);
      Groups made;
      ASSERT_EQ(expand_tile(tile.data(), made.blocks()), bytes);
      ASSERT_TRUE(made == plain) << n;
    }
  }
}

TEST(Tile, AnyBytesAreExpandedAlike) {
  Random random(2, 0);
  int sound = 0;
  for (int n = 0; n < 600; ++n) {
    std::vector<std::uint8_t> tile(readable_tile_bytes);
    for (std::uint8_t& byte : tile) byte = static_cast<std::uint8_t>(random());
    // Usually a sound width and sound lengths.
    if (n % 8 != 0) tile[2] = static_cast<std::uint8_t>(tile[2] % (most_dc_bits + 2));
    const std::size_t lengths = 3U + std::min<std::size_t>(tile[2], most_dc_bits);
    for (std::size_t at = 0; at < 4 && n % 9 != 0; ++at) {
      tile[lengths + at] = static_cast<std::uint8_t>(tile[lengths + at] & 0x77);
      if (n % 5 == 0) tile[lengths + at] = 0x88;
    }
    Groups plain;
    const std::size_t bytes = expand_tile_plain(tile.data(), plain.blocks());
    ASSERT_LE(bytes, most_tile_bytes);
    sound += bytes > 0 ? 1 : 0;
    for (const std::int64_t target : vector_targets()) {
      SCOPED_TRACE(name_of(target));
      const OnTarget on(target);
      Groups made;
      ASSERT_EQ(expand_tile(tile.data(), made.blocks()), bytes);
      if (bytes > 0) {
        ASSERT_TRUE(made == plain) << n;
      }
    }
  }
  EXPECT_GT(sound, 240);
  EXPECT_LT(sound, 570);
}

}  // namespace
}  // namespace millrace::coefficients
