// SPDX-License-Identifier: Apache-2.0
//
// What lies between the entropy stage and the pixel stage: quantised coefficients of blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "jpeg/frame.h"

namespace millrace::jpeg {

/// Four blocks that stand side by side: row by row, and of each row the four blocks' 8 coefficients
/// one block after the other. So a vector of any width takes the same row of whole blocks.
struct alignas(64) BlockGroup {
  static constexpr int blocks = 4;
  static constexpr int row_values = blocks * block_side;

  std::array<std::int16_t, static_cast<std::size_t>(row_values) * block_side> values;
  /// The place, in the file's zigzag order, of each block's last coefficient that is not 0.
  std::array<std::uint8_t, blocks> last;
};

/// Where the coefficients of a block, by their places in the zigzag order (T.81, figure A.6), lie
/// in a group, from the block's first one on.
inline constexpr std::array<std::uint8_t, 64> places_in_group = [] {
  std::array<std::uint8_t, 64> places{};
  int row = 0;
  int column = 0;
  for (std::uint8_t& place : places) {
    place = static_cast<std::uint8_t>(row * BlockGroup::row_values + column);
    // Up to the right on even diagonals, down to the left on odd ones.
    const bool up = (row + column) % 2 == 0;
    const int last = block_side - 1;
    if (up ? column == last : row < last && column == 0)
      ++row;
    else if (up ? row == 0 : row == last)
      ++column;
    else
      row += up ? -1 : 1, column += up ? 1 : -1;
  }
  return places;
}();

/// The coefficients of some MCUs of one row of MCUs. The memory is kept for the next row.
class CoefficientRow {
 public:
  /// The blocks of one component: `down` rows of `groups` groups.
  struct Blocks {
    int across = 0;
    int down = 0;
    int groups = 0;
    std::vector<BlockGroup> all;

    BlockGroup* row(int number) {
      return all.data() + static_cast<std::ptrdiff_t>(number) * groups;
    }
    const BlockGroup* row(int number) const {
      return all.data() + static_cast<std::ptrdiff_t>(number) * groups;
    }
  };

  /// Makes room for `mcus` MCUs of a frame.
  void shape(const Frame& frame, int mcus) {
    for (int number = 0; number < frame.component_count; ++number) {
      const Component& component = frame.components[static_cast<std::size_t>(number)];
      Blocks& blocks = components_[static_cast<std::size_t>(number)];
      blocks.across = mcus * component.across;
      blocks.down = component.down;
      blocks.groups = (blocks.across + BlockGroup::blocks - 1) / BlockGroup::blocks;
      const std::size_t size =
          static_cast<std::size_t>(blocks.down) * static_cast<std::size_t>(blocks.groups);
      blocks.all.resize(std::max(blocks.all.size(), size));
    }
  }

  Blocks& operator[](int component) { return components_[static_cast<std::size_t>(component)]; }
  const Blocks& operator[](int component) const {
    return components_[static_cast<std::size_t>(component)];
  }

 private:
  std::array<Blocks, 3> components_;
};

}  // namespace millrace::jpeg
