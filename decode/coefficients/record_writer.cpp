// SPDX-License-Identifier: Apache-2.0
#include <xxhash.h>

#include <algorithm>
#include <limits>

#include "coefficients/record.h"

namespace millrace::coefficients {
namespace {

/// Appends a row of blocks: the offsets of its tiles' ends, then the tiles. `tiles` and `ends` are
/// scratch memory.
void append_row(const std::int16_t* blocks, int across, std::vector<std::uint8_t>& tiles,
                std::vector<std::uint32_t>& ends, std::vector<std::uint8_t>& to) {
  const auto count = static_cast<std::size_t>((across + tile_blocks - 1) / tile_blocks);
  tiles.resize(std::max(tiles.size(), count * writable_tile_bytes));
  std::uint8_t* next = tiles.data();
  ends.clear();
  for (int first = 0; first < across; first += tile_blocks) {
    next = pack_tile(blocks + static_cast<std::size_t>(first) * block_values,
                     std::min(tile_blocks, across - first), next);
    ends.push_back(static_cast<std::uint32_t>(next - tiles.data()));
  }
  const bool is_short = ends.size() * sizeof(std::uint16_t) + ends.back() <= longest_short_row;
  const std::size_t entry_bytes = is_short ? sizeof(std::uint16_t) : sizeof(std::uint32_t);
  const std::size_t table_bytes = ends.size() * entry_bytes;
  std::size_t at = to.size();
  to.resize(at + table_bytes);
  for (const std::uint32_t end : ends) {
    const auto offset = static_cast<std::uint32_t>(table_bytes + end);
    if (is_short)
      store(static_cast<std::uint16_t>(offset), to.data() + at);
    else
      store(offset, to.data() + at);
    at += entry_bytes;
  }
  to.insert(to.end(), tiles.data(), next);
}

}  // namespace

bool write_record(const jpeg::Frame& frame, const Coefficients& coefficients, const FileParts& file,
                  std::vector<std::byte>& record) {
  std::vector<std::uint8_t> bytes(header_bytes);
  bytes.reserve(file.bytes + file.bytes / 2);
  std::uint8_t* const header = bytes.data();
  std::ranges::copy(magic, header);
  const jpeg::Component& light = frame.components.front();
  header[version_at] = version;
  header[components_at] = static_cast<std::uint8_t>(frame.component_count);
  header[across_at] = static_cast<std::uint8_t>(light.across);
  header[down_at] = static_cast<std::uint8_t>(light.down);
  store(static_cast<std::uint16_t>(frame.width), header + width_at);
  store(static_cast<std::uint16_t>(frame.height), header + height_at);
  header[padding_at] = file.padding ? 1 : 0;
  store(static_cast<std::uint32_t>(file.bytes), header + file_bytes_at);
  store(file.checksum, header + file_checksum_at);

  std::size_t rows = 0;
  for (int component = 0; component < frame.component_count; ++component) {
    rows += static_cast<std::size_t>(blocks_down(frame, component));
    for (const std::uint16_t step : frame.components[static_cast<std::size_t>(component)].steps)
      bytes.push_back(static_cast<std::uint8_t>(step));
  }
  std::size_t entry = bytes.size();
  bytes.resize(entry + (rows + 1) * sizeof(std::uint32_t));
  std::vector<std::uint8_t> tiles;
  std::vector<std::uint32_t> ends;
  constexpr std::size_t longest = std::numeric_limits<std::uint32_t>::max();
  for (int component = 0; component < frame.component_count; ++component) {
    const int across = blocks_across(frame, component);
    const std::int16_t* blocks = coefficients.blocks[static_cast<std::size_t>(component)].data();
    for (int row = 0; row < blocks_down(frame, component); ++row) {
      store(static_cast<std::uint32_t>(bytes.size()), bytes.data() + entry);
      entry += sizeof(std::uint32_t);
      append_row(blocks, across, tiles, ends, bytes);
      blocks += static_cast<std::size_t>(across) * block_values;
      if (bytes.size() > longest) return false;
    }
  }
  store(static_cast<std::uint32_t>(bytes.size()), bytes.data() + entry);
  bytes.insert(bytes.end(), file.skeleton.begin(), file.skeleton.end());
  const std::uint64_t checksum = XXH3_64bits(bytes.data(), bytes.size());
  bytes.resize(bytes.size() + checksum_bytes);
  store(checksum, bytes.data() + bytes.size() - checksum_bytes);
  record.assign(reinterpret_cast<const std::byte*>(bytes.data()),
                reinterpret_cast<const std::byte*>(bytes.data() + bytes.size()));
  return true;
}

}  // namespace millrace::coefficients
