// SPDX-License-Identifier: Apache-2.0
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "coefficients/record.h"

namespace millrace::coefficients {
namespace {

Status corrupt(const char* part) {
  return Status::bad(std::string("its ") + part + " is corrupt; pack the dataset again");
}

}  // namespace

std::int16_t* copy_blocks(const jpeg::BlockGroup* groups, int count, std::int16_t* to) {
  for (int block = 0; block < count; ++block) {
    const std::int16_t* from =
        groups[block / jpeg::BlockGroup::blocks].values.data() +
        static_cast<std::ptrdiff_t>(block % jpeg::BlockGroup::blocks) * jpeg::block_side;
    for (int y = 0; y < jpeg::block_side;
         ++y, to += jpeg::block_side, from += jpeg::BlockGroup::row_values)
      std::memcpy(to, from, jpeg::block_side * sizeof *to);
  }
  return to;
}

Status RecordReader::open(std::span<const std::byte> record, jpeg::Frame& frame) {
  bytes_ = {reinterpret_cast<const std::uint8_t*>(record.data()), record.size()};
  if (bytes_.size() < header_bytes + checksum_bytes)
    return Status::bad("a record of coefficients is cut short");
  const std::uint8_t* const header = bytes_.data();
  if (!std::ranges::equal(magic, bytes_.first(magic.size()))) return corrupt("header");
  if (header[version_at] != version)
    return Status::bad("coefficients of version " + std::to_string(header[version_at]) +
                       "; this millrace reads version " + std::to_string(version));
  frame.component_count = header[components_at];
  if (frame.component_count != 1 && frame.component_count != 3) return corrupt("header");
  frame.components = {};
  jpeg::Component& light = frame.components.front();
  light.across = header[across_at];
  light.down = header[down_at];
  const int most = frame.component_count == 1 ? 1 : 2;
  if (light.across < 1 || light.across > most || light.down < 1 || light.down > most)
    return corrupt("header");
  frame.width = load<std::uint16_t>(header + width_at);
  frame.height = load<std::uint16_t>(header + height_at);
  // libjpeg-turbo does not smooth the chroma of narrower images, but the pixel stage would.
  const int narrowest = light.across == 2 ? 5 : 1;
  if (frame.width < narrowest || frame.height < 1) return corrupt("header");
  if (header[padding_at] > 1) return corrupt("header");
  frame.count_mcus();
  frame.restart_interval = 0;
  frame.scan = {};

  const std::size_t end = bytes_.size() - checksum_bytes;
  std::size_t at = header_bytes;
  const auto components = static_cast<std::size_t>(frame.component_count);
  std::size_t rows = 0;
  for (std::size_t number = 0; number < components; ++number) {
    const int component = static_cast<int>(number);
    first_rows_[number] = rows;
    row_counts_[number] = blocks_down(frame, component);
    tiles_[number] =
        static_cast<std::size_t>((blocks_across(frame, component) + tile_blocks - 1) / tile_blocks);
    rows += static_cast<std::size_t>(row_counts_[number]);
  }
  const std::size_t first = at + components * block_values + (rows + 1) * sizeof(std::uint32_t);
  if (first > end) return Status::bad("a record of coefficients is cut short");
  for (std::size_t number = 0; number < components; ++number, at += block_values)
    std::copy_n(header + at, block_values, frame.components[number].steps.begin());
  row_table_ = header + at;
  const auto rows_end = load<std::uint32_t>(row_table_ + rows * sizeof(std::uint32_t));
  if (load<std::uint32_t>(row_table_) != first || rows_end < first || rows_end > end)
    return corrupt("table of rows");
  file_ = {.skeleton = bytes_.subspan(rows_end, end - rows_end),
           .padding = header[padding_at] != 0,
           .bytes = load<std::uint32_t>(header + file_bytes_at),
           .checksum = load<std::uint64_t>(header + file_checksum_at)};
  return Status::ok();
}

bool RecordReader::has_right_checksum() const {
  const std::size_t end = bytes_.size() - checksum_bytes;
  return XXH3_64bits(bytes_.data(), end) == load<std::uint64_t>(bytes_.data() + end);
}

const std::uint8_t* RecordReader::entry_of(int component, int row) const {
  const std::size_t first = first_rows_[static_cast<std::size_t>(component)];
  return row_table_ + (first + static_cast<std::size_t>(row)) * sizeof(std::uint32_t);
}

/// Returns a row of blocks; nullopt if it does not lie in the record.
std::optional<RecordReader::Row> RecordReader::row_of(int component, int row) const {
  const std::uint8_t* const entry = entry_of(component, row);
  const std::size_t begin = load<std::uint32_t>(entry);
  const std::size_t end = load<std::uint32_t>(entry + sizeof(std::uint32_t));
  // The table's ends are checked; the entries between them are not.
  const auto rows_end = static_cast<std::size_t>(file_.skeleton.data() - bytes_.data());
  if (begin > end || end > rows_end) return {};
  Row found{.bytes = bytes_.subspan(begin, end - begin),
            .entry_bytes = end - begin > longest_short_row ? 4U : 2U,
            .tiles = tiles_[static_cast<std::size_t>(component)]};
  if (found.bytes.size() < found.tiles * (found.entry_bytes + fixed_tile_bytes)) return {};
  if (found.end_of(found.tiles - 1) != found.bytes.size()) return {};
  return found;
}

/// Calls `expand` with a tile. Returns whether `expand` has returned the tile's size.
template <typename Expand>
bool RecordReader::expand_tile_of(const Row& row, std::size_t tile, const Expand& expand) {
  const std::size_t begin = row.begin_of(tile);
  const std::size_t end = row.end_of(tile);
  if (begin < row.tiles * row.entry_bytes || begin > end || end > row.bytes.size()) return false;
  const std::uint8_t* from = row.bytes.data() + begin;
  const auto readable = static_cast<std::size_t>(bytes_.data() + bytes_.size() - from);
  if (readable < readable_tile_bytes) {
    copy_ = {};
    std::copy_n(from, readable, copy_.begin());
    from = copy_.data();
  }
  // A tile ends where the next one begins.
  return expand(from) == end - begin;
}

bool RecordReader::expand(int component, int row, int first, int count, jpeg::BlockGroup* groups) {
  const std::optional<Row> found = row_of(component, row);
  if (!found) return false;
  TileBlocks blocks;
  for (int tile = first / tile_blocks; tile * tile_blocks < first + count; ++tile) {
    for (int n = 0; n < tile_blocks; ++n) {
      const int block = tile * tile_blocks + n - first;
      blocks[static_cast<std::size_t>(n)] =
          block < 0 || block >= count
              ? unwanted_.values.data()
              : groups[block / jpeg::BlockGroup::blocks].values.data() +
                    static_cast<std::ptrdiff_t>(block % jpeg::BlockGroup::blocks) *
                        jpeg::block_side;
    }
    if (!expand_tile_of(*found, static_cast<std::size_t>(tile),
                        [&](const std::uint8_t* from) { return expand_tile(from, blocks); }))
      return false;
  }
  return true;
}

bool RecordReader::make_samples(int component, int row, int first, int count,
                                const StepsOfBytes& steps, std::uint8_t* samples,
                                std::size_t stride) {
  const std::optional<Row> found = row_of(component, row);
  if (!found) return false;
  constexpr int group_blocks = jpeg::BlockGroup::blocks;
  const TileTransform transform = tile_transform();
  TileBytes bytes;
  for (int tile = first / tile_blocks; tile * tile_blocks < first + count; ++tile) {
    if (!expand_tile_of(*found, static_cast<std::size_t>(tile),
                        [&](const std::uint8_t* from) { return transform.expand(from, bytes); }))
      return false;
    const int before = first - tile * tile_blocks;
    const int first_group = std::max(before, 0) / group_blocks;
    const int end_group = before + count > group_blocks ? 2 : 1;
    const std::ptrdiff_t at = first_group * group_blocks - before;
    transform.run(bytes, static_cast<std::size_t>(first_group), static_cast<std::size_t>(end_group),
                  steps, samples + at * jpeg::block_side, stride);
  }
  return true;
}

std::optional<std::span<const std::uint8_t>> RecordReader::tiles(int component, int row, int first,
                                                                 int count,
                                                                 std::uint32_t* ends) const {
  const std::optional<Row> found = row_of(component, row);
  if (!found) return {};
  const auto tile = static_cast<std::size_t>(first);
  const std::size_t begin = found->begin_of(tile);
  if (begin < found->tiles * found->entry_bytes) return {};
  std::size_t end = begin;
  for (std::size_t n = 0; n < static_cast<std::size_t>(count); ++n) {
    const std::size_t next = found->end_of(tile + n);
    if (next < end || next > found->bytes.size()) return {};
    end = next;
    ends[n] = static_cast<std::uint32_t>(end - begin);
  }
  return found->bytes.subspan(begin, end - begin);
}

bool RecordReader::expand_all(const jpeg::Frame& frame, Coefficients& coefficients) {
  coefficients.shape(frame);
  std::vector<jpeg::BlockGroup> groups;
  for (int component = 0; component < frame.component_count; ++component) {
    const int across = blocks_across(frame, component);
    groups.resize(static_cast<std::size_t>((across + jpeg::BlockGroup::blocks - 1) /
                                           jpeg::BlockGroup::blocks));
    std::int16_t* to = coefficients.blocks[static_cast<std::size_t>(component)].data();
    for (int row = 0; row < blocks_down(frame, component); ++row) {
      if (!expand(component, row, 0, across, groups.data())) return false;
      to = copy_blocks(groups.data(), across, to);
    }
  }
  return true;
}

void RecordReader::prefetch(int component, int row, int first, int count) const {
  const std::optional<Row> found = row_of(component, row);
  if (!found) return;
  const std::size_t begin = found->begin_of(static_cast<std::size_t>(first / tile_blocks));
  const std::size_t end =
      found->end_of(static_cast<std::size_t>((first + count - 1) / tile_blocks));
  constexpr std::size_t line_bytes = 64;
  for (std::size_t at = begin; at < std::min(end, found->bytes.size()); at += line_bytes)
    __builtin_prefetch(found->bytes.data() + at);
}

void RecordReader::prefetch_ends(int component, int row) const {
  const std::size_t begin = load<std::uint32_t>(entry_of(component, row));
  __builtin_prefetch(bytes_.data() + std::min(begin, bytes_.size()));
}

}  // namespace millrace::coefficients
