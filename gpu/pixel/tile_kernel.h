// SPDX-License-Identifier: Apache-2.0
//
// The kernel that makes samples from tiles of stored coefficients. Only for crop_kernel.h.
//
// A warp takes a tile, which has 8 blocks (decode/coefficients/FORMAT.md):
//
//   masks      Lanes 0 to 7 read a block's mask each. Sums over the lanes give the offsets of the
//              masks, and of each block's values.
//   values     Each lane reads every 32nd value's nibble. Votes number the escaped ones.
//   blocks     Each lane finds the values of two places of each block: it counts the mask's bits
//              before them. It dequantises them into shared memory.
//   transform  Each lane transforms two columns, then two rows, and writes 2 x 8 samples.
//
// Tiles are untrusted. A part is read only if it lies in the tile, and a tile must end where the
// table of its row says.
#pragma once

#include <millrace/crop_work.h>
#include <millrace/detail/crop_layout.h>

#include <cstddef>
#include <cstdint>

namespace millrace::kernels {

inline constexpr unsigned tile_warps = 4;
inline constexpr unsigned tile_threads = tile_warps * 32;
inline constexpr std::uint32_t all_lanes = 0xFFFFFFFFU;
inline constexpr unsigned blocks_of_tile = 8;
inline constexpr unsigned values_of_block = 64;

/// A block's natural place of each place in the zigzag order (ITU-T T.81, figure A.6), from the
/// second one on. The last one is the DC coefficient's, which is stored apart.
struct ZigzagTable {
  std::uint8_t places[values_of_block];
};
constexpr ZigzagTable make_zigzag() {
  ZigzagTable table{};
  int row = 0;
  int column = 0;
  for (unsigned n = 0; n < values_of_block; ++n) {
    table.places[(n + values_of_block - 1) % values_of_block] =
        static_cast<std::uint8_t>(row * 8 + column);
    const bool up = (row + column) % 2 == 0;
    if (up ? column == 7 : row < 7 && column == 0)
      ++row;
    else if (up ? row == 0 : row == 7)
      ++column;
    else {
      row += up ? -1 : 1;
      column += up ? 1 : -1;
    }
  }
  return table;
}
__device__ constexpr ZigzagTable zigzag_table = make_zigzag();

/// A warp's shared memory.
struct TileScratch {
  /// Values of int16 from one block to the next. The blocks' columns then lie in different banks.
  static constexpr unsigned block_stride = 72;

  std::int16_t values[blocks_of_tile * (values_of_block - 1) + 8];
  std::int16_t blocks[blocks_of_tile * block_stride];
};

/// Sum of the values of the lanes up to the calling one, among groups of eight lanes.
__device__ inline std::uint32_t sum_up_to(std::uint32_t value) {
  for (unsigned delta = 1; delta < blocks_of_tile; delta *= 2) {
    const std::uint32_t before = __shfl_up_sync(all_lanes, value, delta, blocks_of_tile);
    if (threadIdx.x % blocks_of_tile >= delta) value += before;
  }
  return value;
}

/// A tile's bytes, and the masks of its blocks: block n's in lane n.
struct TileReader {
  const std::uint8_t* tile;
  std::uint32_t bytes;
  std::uint32_t dc_bits = 0;
  std::uint64_t mask = 0;
  /// Number of values before those of the block, and of all blocks.
  std::uint32_t before = 0;
  std::uint32_t count = 0;
  std::uint32_t nibbles_at = 0;

  __device__ TileReader(const std::uint8_t* at, std::uint32_t size) : tile(at), bytes(size) {}

  __device__ std::uint32_t byte(std::uint32_t at) const { return __ldg(tile + at); }
  __device__ std::uint32_t word(std::uint32_t at) const {
    return byte(at) | byte(at + 1) << 8U | byte(at + 2) << 16U | byte(at + 3) << 24U;
  }

  /// Reads the parts before the values. Returns false in all lanes for a corrupt tile.
  __device__ bool read_masks() {
    constexpr std::uint32_t fixed = 7;
    if (bytes < fixed) return false;
    dc_bits = byte(2);
    if (dc_bits > 13 || bytes < fixed + dc_bits) return false;
    const std::uint32_t lengths = word(3 + dc_bits);
    const unsigned lane = threadIdx.x % 32;
    const std::uint32_t length = lane < blocks_of_tile ? lengths >> (4 * lane) & 15U : 0;
    if (__ballot_sync(all_lanes, length > 8) != 0) return false;
    const std::uint32_t end = fixed + dc_bits + sum_up_to(length);
    nibbles_at = __shfl_sync(all_lanes, end, blocks_of_tile - 1);
    if (nibbles_at > bytes) return false;
    for (std::uint32_t n = 0; n < length; ++n)
      mask |= std::uint64_t{byte(end - length + n)} << (8 * n);
    if (__ballot_sync(all_lanes, (mask >> 63U) != 0) != 0) return false;
    const auto own = static_cast<std::uint32_t>(__popcll(mask));
    const std::uint32_t sum = sum_up_to(own);
    before = sum - own;
    count = __shfl_sync(all_lanes, sum, blocks_of_tile - 1);
    return true;
  }

  /// Reads all values but the DC coefficients. Returns false in all lanes for a corrupt tile.
  __device__ bool read_values(std::int16_t* values) const {
    const unsigned lane = threadIdx.x % 32;
    const std::uint32_t lower_lanes = (1U << lane) - 1;
    const std::uint32_t escapes_at = nibbles_at + (count + 1) / 2;
    if (escapes_at > bytes) return false;
    std::uint32_t escapes = 0;
    std::uint32_t wide_rounds = 0;  // bit n: this lane's value of round n has two bytes
    for (std::uint32_t round = 0; round * 32 < count; ++round) {
      const std::uint32_t n = round * 32 + lane;
      const std::uint32_t nibble = n < count ? byte(nibbles_at + n / 2) >> (n % 2 * 4) & 15U : 1;
      const std::uint32_t escaped = __ballot_sync(all_lanes, nibble == 0);
      std::int32_t value = static_cast<std::int32_t>(nibble ^ 8U) - 8;
      if (nibble == 0) {
        const std::uint32_t at =
            escapes_at + escapes + static_cast<std::uint32_t>(__popc(escaped & lower_lanes));
        const std::uint32_t escape = at < bytes ? byte(at) : 0;
        value = static_cast<std::int8_t>(escape);
        if (escape == 0x80) wide_rounds |= 1U << round;
      }
      if (n < count) values[n] = static_cast<std::int16_t>(value);
      escapes += static_cast<std::uint32_t>(__popc(escaped));
    }
    return read_wide(values, wide_rounds, escapes_at + escapes);
  }

  /// Reads the values of two bytes, which begin at `at`. Returns whether the tile ends behind them.
  __device__ bool read_wide(std::int16_t* values, std::uint32_t rounds, std::uint32_t at) const {
    const unsigned lane = threadIdx.x % 32;
    for (std::uint32_t round = 0; round * 32 < count; ++round) {
      const std::uint32_t wide = __ballot_sync(all_lanes, (rounds >> round & 1U) != 0);
      if ((wide >> lane & 1U) != 0) {
        const std::uint32_t own =
            at + 2 * static_cast<std::uint32_t>(__popc(wide & ((1U << lane) - 1)));
        if (own + 2 <= bytes)
          values[round * 32 + lane] = static_cast<std::int16_t>(byte(own) | byte(own + 1) << 8U);
      }
      at += 2 * static_cast<std::uint32_t>(__popc(wide));
    }
    __syncwarp(all_lanes);
    return at == bytes;
  }

  __device__ std::int16_t dc(unsigned block) const {
    const std::uint32_t bit = block * dc_bits;
    const std::uint32_t field = word(3 + bit / 8) >> bit % 8 & ((1U << dc_bits) - 1);
    return static_cast<std::int16_t>((byte(0) | byte(1) << 8U) + field);
  }

  /// Writes the dequantised blocks. Returns a bit for each block that has values below its first
  /// row.
  __device__ std::uint32_t fill_blocks(const std::uint8_t* steps, TileScratch& scratch) const {
    const unsigned lane = threadIdx.x % 32;
    unsigned places[2];
    std::int32_t own_steps[2];
    for (unsigned half = 0; half < 2; ++half) {
      places[half] = zigzag_table.places[half * 32 + lane];
      own_steps[half] = __ldg(steps + places[half]);
    }
    std::uint32_t deep = 0;
    for (unsigned block = 0; block < blocks_of_tile; ++block) {
      const std::uint64_t stored = __shfl_sync(all_lanes, mask, static_cast<int>(block));
      const std::uint32_t first = __shfl_sync(all_lanes, before, static_cast<int>(block));
      bool is_deep = false;
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned n = half * 32 + lane;
        std::int32_t value = 0;
        if (n == values_of_block - 1)
          value = dc(block);
        else if ((stored >> n & 1U) != 0)
          value = scratch.values[first + static_cast<std::uint32_t>(
                                             __popcll(stored & ((std::uint64_t{1} << n) - 1)))];
        is_deep = is_deep || (places[half] >= 8 && value != 0);
        scratch.blocks[block * TileScratch::block_stride + places[half]] =
            jpeg::wrapped(value * own_steps[half]);
      }
      if (__ballot_sync(all_lanes, is_deep) != 0) deep |= 1U << block;
    }
    __syncwarp(all_lanes);
    return deep;
  }
};

/// Transforms the dequantised blocks of a tile to samples, in rows `stride` bytes apart.
__device__ inline void transform_blocks(TileScratch& scratch, std::uint32_t deep,
                                        std::uint8_t* samples, std::size_t stride) {
  const unsigned lane = threadIdx.x % 32;
  for (unsigned n = lane; n < blocks_of_tile * 8; n += 32) {
    std::int16_t* const column = scratch.blocks + n / 8 * TileScratch::block_stride + n % 8;
    if ((deep >> n / 8 & 1U) != 0) {
      jpeg::transform_eight(column, 8, jpeg::idct::first_shift);
      continue;
    }
    // libjpeg-turbo's short cut
    const std::int16_t value = jpeg::wrapped(column[0] * (1 << jpeg::idct::kept_bits));
    for (unsigned row = 0; row < 8; ++row) column[row * 8] = value;
  }
  __syncwarp(all_lanes);
  for (unsigned n = lane; n < blocks_of_tile * 8; n += 32) {
    std::int16_t* const row = scratch.blocks + n / 8 * TileScratch::block_stride + n % 8 * 8;
    jpeg::transform_eight(row, 1, jpeg::idct::second_shift);
    std::uint32_t words[2] = {};
    for (unsigned column = 0; column < 8; ++column)
      words[column / 4] |= std::uint32_t{jpeg::clamped(row[column] + 128)} << (column % 4 * 8);
    *reinterpret_cast<uint2*>(samples + n % 8 * stride + n / 8 * 8) =
        make_uint2(words[0], words[1]);
  }
  __syncwarp(all_lanes);
}

/// Makes a tile's samples. Returns false in all lanes for a corrupt tile, whose samples are grey.
__device__ inline bool make_tile_samples(const std::uint8_t* tile, std::uint32_t bytes,
                                         const std::uint8_t* steps, TileScratch& scratch,
                                         std::uint8_t* samples, std::size_t stride) {
  TileReader reader(tile, bytes);
  if (!reader.read_masks() || !reader.read_values(scratch.values)) {
    for (unsigned n = threadIdx.x % 32; n < blocks_of_tile * 8; n += 32)
      *reinterpret_cast<uint2*>(samples + n % 8 * stride + n / 8 * 8) =
          make_uint2(grey_sample * 0x01010101U, grey_sample * 0x01010101U);
    return false;
  }
  transform_blocks(scratch, reader.fill_blocks(steps, scratch), samples, stride);
  return true;
}

}  // namespace millrace::kernels
