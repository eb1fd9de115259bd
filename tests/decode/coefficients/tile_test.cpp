// SPDX-License-Identifier: Apache-2.0
//
// The expansion of tiles on every instruction set, compared with its plain form.
#include <gtest/gtest.h>
#include <millrace/random.h>

#include <algorithm>
#include <array>
#include <vector>

#include "augment/resample/vector_targets.h"
#include "coefficients/expansion_check.h"
#include "coefficients/samples.h"
#include "decode/coefficients/tile_groups.h"

namespace millrace::coefficients {
namespace {

using testing::expands_as_plainly;
using testing::name_of;
using testing::OnTarget;
using testing::TileGroups;
using testing::vector_targets;

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
    std::vector<std::uint8_t> tile(readable_tile_bytes, 0xA5);
    const auto bytes =
        static_cast<std::size_t>(pack_tile(values.data(), tile_blocks, tile.data()) - tile.data());
    TileGroups plain;
    ASSERT_EQ(expand_tile_plain(tile.data(), plain.blocks()), bytes);
    const TileBlocks blocks = plain.blocks();
    for (std::size_t at = 0; at < values.size(); ++at) {
      const std::size_t row = at % block_values / 8, column = at % 8;
      ASSERT_EQ(blocks[at / block_values][row * jpeg::BlockGroup::row_values + column], values[at]);
    }
    for (const std::int64_t target : vector_targets()) {
      SCOPED_TRACE(name_of(target));
      const OnTarget on(target);
      ASSERT_TRUE(expands_as_plainly(tile.data())) << n;
    }
  }
}

TEST(Tile, SamplesAreThoseOfPlainCodeOnEveryInstructionSet) {
  Random random(3, 0);
  std::array<std::int16_t, tile_blocks * block_values> values;
  std::array<std::uint16_t, block_values> steps;
  std::vector<std::uint8_t> tile(readable_tile_bytes);
  for (int n = 0; n < 4000; ++n) {
    // The columns and rows of each group that have coefficients.
    const std::array widths{1 + random() % 8, 1 + random() % 8};
    const std::array heights{1 + random() % 8, 1 + random() % 8};
    const std::uint64_t every = 1U << random() % 7;
    const int largest = n % 3 == 0 ? 350 : 1 + static_cast<int>(random() % 127);
    for (std::uint16_t& step : steps)
      step = static_cast<std::uint16_t>(
          1 + random() % static_cast<std::uint64_t>(std::min(350 / largest, 255)));
    for (std::size_t at = 0; at < values.size(); ++at) {
      const std::size_t group = at / (4 * block_values);
      const bool is_zero = at % 8 >= widths[group] || at % block_values / 8 >= heights[group] ||
                           random() % every != 0;
      const auto any = static_cast<int>(random() % (2 * static_cast<std::uint64_t>(largest) + 1));
      values[at] = static_cast<std::int16_t>(is_zero ? 0 : any - largest);
    }
    pack_tile(values.data(), tile_blocks, tile.data());
    for (const std::int64_t target : vector_targets()) {
      SCOPED_TRACE(name_of(target));
      const OnTarget on(target);
      ASSERT_TRUE(tile_transform().run == nullptr || transforms_as_plainly(tile.data(), steps))
          << n;
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
    if (n % 8 != 0) tile[2] = static_cast<std::uint8_t>(tile[2] % (max_dc_bits + 2));
    const std::size_t lengths = 3U + std::min<std::size_t>(tile[2], max_dc_bits);
    for (std::size_t at = 0; at < 4 && n % 9 != 0; ++at) {
      tile[lengths + at] = static_cast<std::uint8_t>(tile[lengths + at] & 0x77);
      if (n % 5 == 0) tile[lengths + at] = 0x88;
    }
    TileGroups plain;
    const std::size_t bytes = expand_tile_plain(tile.data(), plain.blocks());
    ASSERT_LE(bytes, max_tile_bytes);
    sound += bytes > 0 ? 1 : 0;
    for (const std::int64_t target : vector_targets()) {
      SCOPED_TRACE(name_of(target));
      const OnTarget on(target);
      ASSERT_TRUE(expands_as_plainly(tile.data())) << n;
    }
  }
  EXPECT_GT(sound, 240);
  EXPECT_LT(sound, 570);
}

}  // namespace
}  // namespace millrace::coefficients
