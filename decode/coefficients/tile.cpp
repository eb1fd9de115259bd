// SPDX-License-Identifier: Apache-2.0
#include "coefficients/tile.h"

#include <algorithm>

#include "jpeg/coefficients.h"

namespace millrace::coefficients {
namespace {

/// Appends fields of any number of bits, from each byte's lowest bit on.
class FieldWriter {
 public:
  explicit FieldWriter(std::vector<std::uint8_t>& to) : to_(to) {}

  void put(std::uint32_t value, unsigned bits) {
    held_ |= std::uint64_t{value} << count_;
    for (count_ += bits; count_ >= 8; count_ -= 8, held_ >>= 8)
      to_.push_back(static_cast<std::uint8_t>(held_));
  }
  void fill_byte() {
    if (count_ > 0) to_.push_back(static_cast<std::uint8_t>(held_));
    held_ = count_ = 0;
  }

 private:
  std::vector<std::uint8_t>& to_;
  std::uint64_t held_ = 0;
  unsigned count_ = 0;
};

template <typename Number>
void append(Number number, std::vector<std::uint8_t>& to) {
  to.resize(to.size() + sizeof number);
  store(number, to.data() + to.size() - sizeof number);
}

void pack_dc(const std::int16_t* blocks, int count, std::vector<std::uint8_t>& to) {
  std::array<int, tile_blocks> values{};
  for (int block = 0; block < tile_blocks; ++block)
    values[static_cast<std::size_t>(block)] =
        blocks[static_cast<std::size_t>(std::min(block, count - 1)) * block_values];
  const auto [least, most] = std::ranges::minmax(values);
  const auto bits = static_cast<unsigned>(std::bit_width(static_cast<unsigned>(most - least)));
  append(static_cast<std::int16_t>(least), to);
  to.push_back(static_cast<std::uint8_t>(bits));
  FieldWriter fields(to);
  for (const int value : values) fields.put(static_cast<std::uint32_t>(value - least), bits);
}

}  // namespace

void pack_tile(const std::int16_t* blocks, int count, std::vector<std::uint8_t>& to) {
  pack_dc(blocks, count, to);
  std::array<std::uint64_t, tile_blocks> masks{};
  std::array<std::int16_t, std::size_t{tile_blocks} * (block_values - 1)> values;
  std::size_t value_count = 0;
  for (int block = 0; block < count; ++block)
    for (std::size_t n = 1; n < block_values; ++n) {
      const std::int16_t value =
          blocks[static_cast<std::size_t>(block) * block_values + zigzag_places[n]];
      values[value_count] = value;
      value_count += value != 0 ? 1 : 0;
      masks[static_cast<std::size_t>(block)] |= std::uint64_t{value != 0} << (n - 1);
    }
  const auto mask_bytes = [](std::uint64_t mask) {
    return (static_cast<unsigned>(std::bit_width(mask)) + 7) / 8;
  };
  FieldWriter fields(to);
  for (const std::uint64_t mask : masks) fields.put(mask_bytes(mask), 4);
  for (const std::uint64_t mask : masks)
    for (unsigned byte = 0; byte < mask_bytes(mask); ++byte)
      to.push_back(static_cast<std::uint8_t>(mask >> 8 * byte));
  const auto is_long = [](int value) { return value < least_nibble || value > most_nibble; };
  const auto is_wide = [](int value) { return value < least_byte || value > most_byte; };
  bool any_wide = false;
  for (std::size_t n = 0; n < value_count; ++n)
    fields.put(is_long(values[n]) ? 0 : static_cast<std::uint32_t>(values[n]) & 15, 4);
  fields.fill_byte();
  for (std::size_t n = 0; n < value_count; ++n) {
    if (!is_long(values[n])) continue;
    any_wide = any_wide || is_wide(values[n]);
    to.push_back(is_wide(values[n]) ? wide_byte : static_cast<std::uint8_t>(values[n]));
  }
  if (!any_wide) return;
  for (std::size_t n = 0; n < value_count; ++n)
    if (is_wide(values[n])) append(values[n], to);
}

std::size_t expand_tile_plain(const std::uint8_t* tile, const TileBlocks& blocks) {
  TileParts parts;
  if (!parts.read(tile)) return 0;
  for (std::int16_t* block : blocks)
    for (int row = 0; row < jpeg::block_side; ++row)
      std::fill_n(block + row * jpeg::BlockGroup::row_values, jpeg::block_side, std::int16_t{0});

  std::array<std::int16_t*, std::size_t{tile_blocks} * (block_values - 1)> wide;
  std::size_t wide_count = 0;
  const std::uint8_t* next = parts.escapes;
  std::size_t place = 0;
  for (std::size_t block = 0; block < blocks.size(); ++block)
    for (std::uint64_t mask = parts.masks[block]; mask != 0; mask &= mask - 1, ++place) {
      const auto n = static_cast<std::size_t>(std::countr_zero(mask)) + 1;
      std::int16_t& value = blocks[block][jpeg::zigzag_offsets[n]];
      const int nibble = parts.nibbles[place / 2] >> place % 2 * 4 & 15;
      if (nibble != 0) {
        value = static_cast<std::int16_t>(nibble < 8 ? nibble : nibble - 16);
      } else {
        value = static_cast<std::int8_t>(*next);
        if (*next++ == wide_byte) wide[wide_count++] = &value;
      }
    }
  for (std::size_t n = 0; n < wide_count; ++n, next += sizeof(std::int16_t))
    *wide[n] = load<std::int16_t>(next);
  parts.put_dc(blocks);
  return static_cast<std::size_t>(next - tile);
}

}  // namespace millrace::coefficients
