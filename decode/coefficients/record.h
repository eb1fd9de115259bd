// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "coefficients/samples.h"
#include "coefficients/tile.h"
#include "jpeg/coefficients.h"
#include "jpeg/frame.h"

namespace millrace::coefficients {

/// Returns the number of blocks in a row of a component, and of rows of blocks. Blocks that only
/// fill MCUs are counted.
inline int blocks_across(const jpeg::Frame& frame, int component) {
  return frame.mcus_across * frame.components[static_cast<std::size_t>(component)].across;
}
inline int blocks_down(const jpeg::Frame& frame, int component) {
  return frame.mcus_down * frame.components[static_cast<std::size_t>(component)].down;
}

/// All coefficients of an image: for each component, rows of blocks of 64 coefficients.
struct Coefficients {
  std::array<std::vector<std::int16_t>, 3> blocks;

  /// Reserves memory for the blocks of a frame.
  void shape(const jpeg::Frame& frame) {
    for (int component = 0; component < frame.component_count; ++component)
      blocks[static_cast<std::size_t>(component)].resize(
          static_cast<std::size_t>(blocks_across(frame, component)) *
          static_cast<std::size_t>(blocks_down(frame, component)) * block_values);
  }
};

/// Copies `count` blocks of groups to `to`, one block after the other. Returns the end of the copy.
std::int16_t* copy_blocks(const jpeg::BlockGroup* groups, int count, std::int16_t* to);

/// The parts of a record that belong to the original file.
struct FileParts {
  /// The file without the entropy-coded data of its scans.
  std::span<const std::uint8_t> skeleton;
  /// Value of the bits that fill a scan's last byte.
  bool padding = true;
  std::size_t bytes = 0;
  std::uint64_t checksum = 0;
};

/// Writes a record. The frame has the image's size, sampling and quantisation tables. Returns false
/// if the record would have 4 GiB or more.
bool write_record(const jpeg::Frame& frame, const Coefficients& coefficients, const FileParts& file,
                  std::vector<std::byte>& record);

/// Reads a record. The bytes must outlive its use. Every offset and length is checked before it is
/// used.
class RecordReader {
 public:
  /// Reads the header and sets the frame's size, sampling and quantisation tables. Returns a bad
  /// status for a corrupt header, or an unknown version.
  Status open(std::span<const std::byte> record, jpeg::Frame& frame);
  /// Compares the checksum. Reads all bytes of the record.
  bool has_right_checksum() const;

  /// Expands `count` blocks of a row of blocks, from block `first` on, into groups of four. Returns
  /// false if the row is corrupt.
  bool expand(int component, int row, int first, int count, jpeg::BlockGroup* groups);
  /// Makes the samples of `count` blocks of a row of blocks, from block `first` on: eight rows,
  /// `stride` bytes apart. Call it only if there is a `tile_transform()`. May write 24 bytes before
  /// and after each row of samples. Returns false if the row is corrupt.
  bool make_samples(int component, int row, int first, int count, const StepsOfBytes& steps,
                    std::uint8_t* samples, std::size_t stride);
  /// Expands all blocks. The frame must be the one of `open`.
  bool expand_all(const jpeg::Frame& frame, Coefficients& coefficients);
  /// Returns the bytes of `count` tiles of a row of blocks, from tile `first` on. Sets `ends` to
  /// the end of each tile, counted from the start of the first one. Returns nullopt if the row is
  /// corrupt. Does not read the tiles.
  std::optional<std::span<const std::uint8_t>> tiles(int component, int row, int first, int count,
                                                     std::uint32_t* ends) const;
  /// Prefetches the tiles of blocks into the processor's cache.
  void prefetch(int component, int row, int first, int count) const;
  /// Prefetches the ends of a row's first tiles. The row must lie in the image.
  void prefetch_ends(int component, int row) const;

  /// Returns the parts of the original file.
  const FileParts& file() const { return file_; }

 private:
  struct Row {
    std::span<const std::uint8_t> bytes;
    std::size_t entry_bytes = 0;
    std::size_t tiles = 0;

    /// Returns the offset of a tile's end.
    std::size_t end_of(std::size_t tile) const {
      const std::uint8_t* const entry = bytes.data() + tile * entry_bytes;
      return entry_bytes == 2 ? load<std::uint16_t>(entry) : load<std::uint32_t>(entry);
    }
    std::size_t begin_of(std::size_t tile) const {
      return tile == 0 ? tiles * entry_bytes : end_of(tile - 1);
    }
  };

  /// Returns a row's entry in the table of rows.
  const std::uint8_t* entry_of(int component, int row) const;
  std::optional<Row> row_of(int component, int row) const;
  template <typename Expand>
  bool expand_tile_of(const Row& row, std::size_t tile, const Expand& expand);

  std::span<const std::uint8_t> bytes_;
  /// For each component: the index of its first entry in the table of rows, the number of its rows,
  /// and the number of tiles in a row.
  std::array<std::size_t, 3> first_rows_{};
  std::array<int, 3> row_counts_{};
  std::array<std::size_t, 3> tiles_{};
  const std::uint8_t* row_table_ = nullptr;
  FileParts file_;
  /// Scratch for the unwanted blocks of a tile, and a readable copy of one of the record's last
  /// tiles.
  jpeg::BlockGroup unwanted_;
  std::array<std::uint8_t, readable_tile_bytes> copy_;
};

}  // namespace millrace::coefficients
