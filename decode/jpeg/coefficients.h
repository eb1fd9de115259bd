// SPDX-License-Identifier: Apache-2.0
//
// The data between the entropy stage and the pixel stage: quantised coefficients of blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "jpeg/frame.h"

namespace millrace::jpeg {

/// Four blocks side by side, in rows. Each row has the four blocks' 8 coefficients, one block after
/// the other. So a vector register of any width holds the same row of one or more whole blocks.
struct alignas(64) BlockGroup {
  static constexpr int blocks = 4;
  static constexpr int row_values = blocks * block_side;

  std::array<std::int16_t, static_cast<std::size_t>(row_values) * block_side> values;
};

/// Maps each zigzag index (T.81, figure A.6) to the coefficient's offset in a group, counted from
/// the block's first coefficient.
inline constexpr std::array<std::uint8_t, 64> zigzag_offsets = [] {
  std::array<std::uint8_t, 64> offsets{};
  int row = 0;
  int column = 0;
  for (std::uint8_t& offset : offsets) {
    offset = static_cast<std::uint8_t>(row * BlockGroup::row_values + column);
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
  return offsets;
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

  CoefficientRow() = default;
  CoefficientRow(const CoefficientRow&) = delete;
  CoefficientRow& operator=(const CoefficientRow&) = delete;

  /// Returns the number of groups in a row of `blocks` blocks.
  static int groups_of(int blocks) {
    return (blocks + BlockGroup::blocks - 1) / BlockGroup::blocks;
  }
  /// Lays the row out for `mcus` MCUs of a frame, and reserves memory.
  void shape(const Frame& frame, int mcus) {
    component_count_ = frame.component_count;
    std::size_t of_mcu = 0;
    for (int number = 0; number < component_count_; ++number) {
      const Component& component = frame.components[static_cast<std::size_t>(number)];
      Blocks& blocks = (*this)[number];
      blocks.across = mcus * component.across;
      blocks.down = component.down;
      blocks.groups = groups_of(blocks.across);
      const std::size_t size =
          static_cast<std::size_t>(blocks.down) * static_cast<std::size_t>(blocks.groups);
      blocks.all.resize(std::max(blocks.all.size(), size));
      of_mcu +=
          static_cast<std::size_t>(component.across) * static_cast<std::size_t>(component.down);
    }
    blocks_in_file_order_.resize(of_mcu * static_cast<std::size_t>(mcus));
    std::int16_t** first = blocks_in_file_order_.data();
    for (int number = 0; number < component_count_; ++number) {
      const int across = frame.components[static_cast<std::size_t>(number)].across;
      Blocks& blocks = (*this)[number];
      for (int y = 0; y < blocks.down; ++y) {
        BlockGroup* const row = blocks.row(y);
        for (int x = 0; x < across; ++x, ++first) {
          std::size_t at = 0;
          for (int column = x; column < blocks.across; column += across, at += of_mcu)
            first[at] = row[column / BlockGroup::blocks].values.data() +
                        static_cast<std::ptrdiff_t>(column % BlockGroup::blocks) * block_side;
        }
      }
    }
  }
  /// Sets all coefficients to 0.
  void clear() {
    for (int number = 0; number < component_count_; ++number) {
      Blocks& blocks = (*this)[number];
      std::memset(static_cast<void*>(blocks.all.data()), 0,
                  sizeof(BlockGroup) * static_cast<std::size_t>(blocks.down * blocks.groups));
    }
  }

  Blocks& operator[](int component) { return components_[static_cast<std::size_t>(component)]; }
  const Blocks& operator[](int component) const {
    return components_[static_cast<std::size_t>(component)];
  }
  /// Returns the first coefficient of each block, in the order of the blocks in the file.
  std::int16_t* const* blocks_in_file_order() const { return blocks_in_file_order_.data(); }

 private:
  int component_count_ = 0;
  std::array<Blocks, 3> components_;
  std::vector<std::int16_t*> blocks_in_file_order_;
};

}  // namespace millrace::jpeg
