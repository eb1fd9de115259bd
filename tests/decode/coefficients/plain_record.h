// SPDX-License-Identifier: Apache-2.0
//
// A second reader of the record form `coefficients`, written from FORMAT.md alone. It is simple and
// slow, and trusts the record.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::testing {

/// All coefficients of a record, and its other content.
struct PlainRecord {
  struct Component {
    std::array<int, 64> steps{};
    int across = 0;
    int down = 0;
    /// Blocks of 64 coefficients, row by row; each block's coefficients are row by row, too.
    std::vector<int> values;
  };

  int width = 0;
  int height = 0;
  std::vector<Component> components;
  int padding = 0;
  std::size_t file_bytes = 0;
  std::uint64_t file_checksum = 0;
  std::vector<std::uint8_t> skeleton;
  std::uint64_t checksum = 0;
  /// Whether it has rows of more than 65,535 bytes, and coefficients of two bytes.
  bool has_long_rows = false;
  bool has_wide_values = false;

  explicit PlainRecord(std::span<const std::byte> record) : record_(record) {
    width = static_cast<int>(number(12, 2));
    height = static_cast<int>(number(14, 2));
    padding = static_cast<int>(number(16, 1));
    file_bytes = number(20, 4);
    file_checksum = number(24, 8);
    const int mcu_across = static_cast<int>(number(10, 1)),
              mcu_down = static_cast<int>(number(11, 1));
    const auto mcus = [](int pixels, int blocks) {
      return (pixels + 8 * blocks - 1) / (8 * blocks);
    };
    components.resize(number(9, 1));
    std::size_t at = 32;
    for (Component& component : components) {
      const bool is_first = &component == components.data();
      component.across = mcus(width, mcu_across) * (is_first ? mcu_across : 1);
      component.down = mcus(height, mcu_down) * (is_first ? mcu_down : 1);
      for (int& step : component.steps) step = static_cast<int>(number(at++, 1));
    }
    for (Component& component : components)
      for (int row = 0; row < component.down; ++row, at += 4)
        read_row(component, number(at, 4), number(at + 4, 4));
    for (std::size_t n = number(at, 4); n < record.size() - 8; ++n)
      skeleton.push_back(static_cast<std::uint8_t>(number(n, 1)));
    checksum = number(record.size() - 8, 8);
  }

 private:
  std::uint64_t number(std::size_t at, std::size_t bytes) const {
    std::uint64_t value = 0;
    for (std::size_t n = bytes; n-- > 0;)
      value = value * 256 + std::to_integer<std::uint64_t>(record_[at + n]);
    return value;
  }
  std::uint64_t bits(std::size_t first_byte, std::size_t bit, std::size_t count) const {
    std::uint64_t value = 0;
    for (std::size_t n = count; n-- > 0;)
      value = value * 2 + (number(first_byte + (bit + n) / 8, 1) >> (bit + n) % 8 & 1);
    return value;
  }

  void read_row(Component& component, std::size_t begin, std::size_t end) {
    const std::size_t entry_bytes = end - begin > 65535 ? 4 : 2;
    has_long_rows = has_long_rows || entry_bytes == 4;
    const std::size_t tiles = static_cast<std::size_t>(component.across + 7) / 8;
    std::size_t tile_begin = begin + tiles * entry_bytes;
    for (std::size_t tile = 0; tile < tiles; ++tile) {
      read_tile(component, static_cast<int>(tile), tile_begin);
      tile_begin = begin + number(begin + tile * entry_bytes, entry_bytes);
    }
  }

  void read_tile(Component& component, int tile, std::size_t at) {
    std::array<std::array<int, 64>, 8> blocks{};  // in the zigzag order
    const auto least = static_cast<std::int16_t>(number(at, 2));
    const std::size_t dc_bits = number(at + 2, 1);
    for (std::size_t block = 0; block < 8; ++block)
      blocks[block][0] = least + static_cast<int>(bits(at + 3, block * dc_bits, dc_bits));
    at += 3 + dc_bits;

    std::vector<int*> stored;
    std::size_t next = at + 4;
    for (std::size_t block = 0; block < 8; ++block) {
      const std::size_t mask_bytes = bits(at, 4 * block, 4);
      for (std::size_t bit = 0; bit < 8 * mask_bytes; ++bit)
        if (bits(next, bit, 1) == 1) stored.push_back(&blocks[block][bit + 1]);
      next += mask_bytes;
    }
    std::vector<int*> escaped;
    for (std::size_t n = 0; n < stored.size(); ++n) {
      const int nibble = static_cast<int>(bits(next, 4 * n, 4));
      *stored[n] = nibble < 8 ? nibble : nibble - 16;
      if (nibble == 0) escaped.push_back(stored[n]);
    }
    next += (stored.size() + 1) / 2;
    std::vector<int*> wide;
    for (int* value : escaped) {
      *value = static_cast<std::int8_t>(number(next++, 1));
      if (*value == -128) wide.push_back(value);
    }
    for (int* value : wide) {
      *value = static_cast<std::int16_t>(number(next, 2));
      next += 2;
    }
    has_wide_values = has_wide_values || !wide.empty();
    add(component, tile, blocks);
  }

  static void add(Component& component, int tile,
                  const std::array<std::array<int, 64>, 8>& blocks) {
    for (int block = 0; block < 8 && tile * 8 + block < component.across; ++block) {
      const std::size_t first = component.values.size();
      component.values.resize(first + 64);
      int row = 0, column = 0;
      for (const int value : blocks[static_cast<std::size_t>(block)]) {
        component.values[first + static_cast<std::size_t>(8 * row + column)] = value;
        const bool up = (row + column) % 2 == 0;
        if (up && column < 7)
          ++column, row -= row > 0 ? 1 : 0;
        else if (up)
          ++row;
        else if (row < 7)
          ++row, column -= column > 0 ? 1 : 0;
        else
          ++column;
      }
    }
  }

  std::span<const std::byte> record_;
};

}  // namespace millrace::testing
