// SPDX-License-Identifier: Apache-2.0
#include "jpeg/progressive/progressive_coefficients.h"

#include <algorithm>
#include <cstring>

#include "jpeg/progressive/block_sums.h"
#include "jpeg/progressive/scan_loops.h"

namespace millrace::jpeg {
namespace {

constexpr std::size_t cache_line = 64;

std::size_t whole_lines(std::size_t bytes) {
  return (bytes + cache_line - 1) / cache_line * cache_line;
}

int ceil_divided(int value, int by) { return (value + by - 1) / by; }

/// Numbers of blocks of a component.
struct BlockCounts {
  std::size_t needed;
  /// Blocks with values, plus slot 0 for the others.
  std::size_t slots;
  /// DC coefficients.
  std::size_t dc;
};

std::size_t masks_of(int refined_bit_count) {
  return BlockMasks::planes + static_cast<std::size_t>(refined_bit_count);
}

/// Returns the bytes of a component's arrays. Each array begins with a cache line.
std::array<std::size_t, 4> bytes_of(const BlockCounts& counts, std::size_t masks) {
  return {whole_lines(counts.needed * masks * sizeof(std::uint64_t)),
          whole_lines(counts.needed * sizeof(std::uint32_t)),
          whole_lines(counts.slots * 64 * sizeof(std::int16_t)),
          whole_lines(counts.dc * sizeof(std::int16_t))};
}

}  // namespace

std::uint64_t ProgressiveCoefficients::bytes_for(const Frame& frame, int refined_bit_count) {
  std::uint64_t bytes = cache_line;
  for (int number = 0; number < frame.component_count; ++number) {
    const Component& component = frame.components[static_cast<std::size_t>(number)];
    const int across = frame.mcus_across * component.across;
    const int down = frame.mcus_down * component.down;
    const std::size_t blocks = static_cast<std::size_t>(across) * static_cast<std::size_t>(down);
    for (const std::size_t part :
         bytes_of({blocks, blocks + 1, blocks}, masks_of(refined_bit_count)))
      bytes += part;
  }
  return bytes;
}

void ProgressiveCoefficients::shape(const Frame& frame, int refined_bit_count, const McuBox& box) {
  box_ = box;
  masks_per_block_ = masks_of(refined_bit_count);
  std::array<std::array<std::size_t, 4>, 3> sizes{};
  std::size_t all = 0;
  const Component& largest = frame.components.front();
  for (int number = 0; number < frame.component_count; ++number) {
    const Component& component = frame.components[static_cast<std::size_t>(number)];
    ProgressiveBlocks& blocks = components_[static_cast<std::size_t>(number)];
    blocks.across =
        ceil_divided(ceil_divided(frame.width * component.across, largest.across), block_side);
    blocks.down =
        ceil_divided(ceil_divided(frame.height * component.down, largest.down), block_side);
    blocks.start = box.start_row * component.down;
    const auto across = static_cast<std::size_t>(blocks.across);
    const int rows = std::min(blocks.down, box.end_row * component.down);
    const int columns = std::min(blocks.across, box.end_column * component.across);
    const bool has_end = box.end_row == frame.mcus_down;
    blocks.needed = has_end ? across * static_cast<std::size_t>(blocks.down - blocks.start)
                            : across * static_cast<std::size_t>(rows - blocks.start - 1) +
                                  static_cast<std::size_t>(columns);
    blocks.dc_stride =
        static_cast<std::size_t>(frame.mcus_across) * static_cast<std::size_t>(component.across);
    const int wanted_rows = rows - box.first_row * component.down;
    const int wanted_columns = columns - box.first_column * component.across;
    sizes[static_cast<std::size_t>(number)] = bytes_of(
        {blocks.needed,
         1 + static_cast<std::size_t>(wanted_rows) * static_cast<std::size_t>(wanted_columns),
         blocks.dc_stride *
             static_cast<std::size_t>((box.end_row - box.start_row) * component.down)},
        masks_per_block_);
    for (const std::size_t part : sizes[static_cast<std::size_t>(number)]) all += part;
  }
  std::uint8_t* memory = memory_.reserve(all + cache_line);
  memory += (cache_line - reinterpret_cast<std::uintptr_t>(memory) % cache_line) % cache_line;
  std::memset(memory, 0, all);
  for (int number = 0; number < frame.component_count; ++number) {
    const Component& component = frame.components[static_cast<std::size_t>(number)];
    ProgressiveBlocks& blocks = components_[static_cast<std::size_t>(number)];
    const std::array<std::size_t, 4>& parts = sizes[static_cast<std::size_t>(number)];
    blocks.masks = reinterpret_cast<std::uint64_t*>(memory);
    blocks.slots = reinterpret_cast<std::uint32_t*>(memory += parts[0]);
    blocks.values = reinterpret_cast<std::int16_t*>(memory += parts[1]);
    blocks.dc = reinterpret_cast<std::int16_t*>(memory += parts[2]);
    memory += parts[3];
    const int rows = std::min(blocks.down, box.end_row * component.down);
    const int columns = std::min(blocks.across, box.end_column * component.across);
    std::uint32_t slot = 1;
    for (int y = box.first_row * component.down; y < rows; ++y) {
      std::uint32_t* const row = blocks.slots + std::ptrdiff_t{y - blocks.start} * blocks.across;
      for (int x = box.first_column * component.across; x < columns; ++x) row[x] = slot++;
    }
  }
}

void ProgressiveCoefficients::copy_row(const Frame& frame, int mcu_row, CoefficientRow& row) const {
  for (int number = 0; number < frame.component_count; ++number) {
    const Component& component = frame.components[static_cast<std::size_t>(number)];
    const ProgressiveBlocks& from = (*this)[number];
    CoefficientRow::Blocks& to = row[number];
    const int begin = box_.first_column * component.across;
    const int columns = std::min(from.across - begin, to.across);
    const int rows = std::min(from.down - mcu_row * component.down, to.down);
    for (int y = 0; y < rows; ++y) {
      const auto kept_row = static_cast<std::size_t>(mcu_row * component.down + y - from.start);
      const std::size_t block =
          kept_row * static_cast<std::size_t>(from.across) + static_cast<std::size_t>(begin);
      sum_blocks({.dc = from.dc + kept_row * from.dc_stride + begin,
                  .masks = from.masks + block * masks_per_block_,
                  .masks_per_block = masks_per_block_,
                  .slots = from.slots + block,
                  .values = from.values},
                 columns, to.row(y));
    }
  }
}

}  // namespace millrace::jpeg
