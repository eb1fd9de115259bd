// SPDX-License-Identifier: Apache-2.0
//
// The functions by which the kernel `transform_tiles` makes samples from tiles of stored
// coefficients. Included only by crop_kernel.h.
//
// A warp processes a tile, which has 8 blocks (decode/coefficients/FORMAT.md):
//
//   masks      Lanes 0 to 7 read a block's mask each. Sums over the lanes give the offsets of the
//              masks, and of each block's values.
//   values     In rounds of 64 values, each lane reads one byte: the nibbles of two values. Votes
//              number the escaped values.
//   blocks     Each lane fills two places of each block. To find a place's value it counts the
//              mask's bits before the place. It writes the dequantised value to shared memory.
//   transform  Each lane transforms two columns, then two rows, and writes 2 x 8 samples.
//
// A loop with `#pragma unroll 1` stays one loop in the machine code, so that
// tests/gpu/kernel_counts.py recognises it.
//
// Tiles are untrusted. The kernel reads no byte beyond a tile's end, which the table of its row
// gives. A tile whose content ends elsewhere is corrupt.
#pragma once

#include <millrace/crop_work.h>
#include <millrace/detail/crop_layout.h>

#include <cstddef>
#include <cstdint>

#include "pixel/block_kernel.h"

namespace millrace::kernels {

inline constexpr unsigned tile_warps = 4;
inline constexpr unsigned tile_threads = tile_warps * 32;
inline constexpr unsigned blocks_of_tile = 8;

/// A warp's shared memory.
struct alignas(16) TileScratch {
  std::int16_t values[blocks_of_tile * (values_of_block - 1) + 8];
  std::int16_t blocks[blocks_of_tile * block_stride];
};

/// Returns the inclusive prefix sum of the lanes' values in each group of eight lanes.
__device__ inline std::uint32_t sum_up_to(std::uint32_t value) {
#pragma unroll
  for (unsigned delta = 1; delta < blocks_of_tile; delta *= 2) {
    const std::uint32_t before = __shfl_up_sync(all_lanes, value, delta, blocks_of_tile);
    if (threadIdx.x % blocks_of_tile >= delta) value += before;
  }
  return value;
}

__device__ inline std::uint32_t bits_in(std::uint32_t bits) {
  return static_cast<std::uint32_t>(__popc(bits));
}

/// The two places of each block that a lane fills, and their quantisation steps.
struct LanePlaces {
  unsigned places[2];
  std::int32_t steps[2];
  /// All ones for a place below a block's first row, else 0.
  std::int32_t below[2];

  __device__ explicit LanePlaces(const std::uint8_t* plane_steps) {
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      places[half] = zigzag_table.places[half * 32 + threadIdx.x % 32];
      steps[half] = __ldg(plane_steps + places[half]);
      below[half] = places[half] >= 8 ? -1 : 0;
    }
  }
};

/// A tile's bytes, and the masks of its blocks. Lane n holds the mask of block n.
struct TileReader {
  const std::uint8_t* tile;
  std::uint32_t bytes;
  std::uint32_t low_mask = 0;
  std::uint32_t high_mask = 0;
  /// DC coefficient of block n, in the lanes n, n + 8, n + 16 and n + 24.
  std::int16_t dc = 0;
  /// Number of values before the block's first one, and number of values of all blocks.
  std::uint32_t before = 0;
  std::uint32_t count = 0;
  std::uint32_t nibbles_at = 0;

  __device__ TileReader(const std::uint8_t* at, std::uint32_t size) : tile(at), bytes(size) {}

  __device__ std::uint32_t byte(std::uint32_t at) const { return __ldg(tile + at); }
  __device__ std::uint32_t word(std::uint32_t at) const {
    return byte(at) | byte(at + 1) << 8U | byte(at + 2) << 16U | byte(at + 3) << 24U;
  }

  /// Reads all fields that precede the values. Returns false in all lanes for a corrupt tile.
  __device__ bool read_masks() {
    constexpr std::uint32_t fixed = 7;
    if (bytes < fixed) return false;
    const std::uint32_t dc_bits = byte(2);
    if (dc_bits > 13 || bytes < fixed + dc_bits) return false;
    const unsigned lane = threadIdx.x % 32;
    const std::uint32_t bit = lane % blocks_of_tile * dc_bits;
    const std::uint32_t field = word(3 + bit / 8) >> bit % 8 & ((1U << dc_bits) - 1);
    dc = static_cast<std::int16_t>((byte(0) | byte(1) << 8U) + field);
    const std::uint32_t lengths = word(3 + dc_bits);
    const std::uint32_t length = lane < blocks_of_tile ? lengths >> (4 * lane) & 15U : 0;
    if (__ballot_sync(all_lanes, length > 8) != 0) return false;
    const std::uint32_t end = fixed + dc_bits + sum_up_to(length);
    nibbles_at = __shfl_sync(all_lanes, end, blocks_of_tile - 1);
    if (nibbles_at > bytes) return false;
    const std::uint8_t* const own_mask = tile + (end - length);
#pragma unroll
    for (std::uint32_t n = 0; n < 8; ++n)
      if (n < length)
        (n < 4 ? low_mask : high_mask) |= std::uint32_t{__ldg(own_mask + n)} << n % 4 * 8;
    if (__ballot_sync(all_lanes, high_mask >> 31U != 0) != 0) return false;
    const std::uint32_t own = bits_in(low_mask) + bits_in(high_mask);
    const std::uint32_t sum = sum_up_to(own);
    before = sum - own;
    count = __shfl_sync(all_lanes, sum, blocks_of_tile - 1);
    return true;
  }

  /// Reads the byte of an escaped value, at `at`, into `value`. Returns whether the byte announces
  /// a value of two bytes.
  __device__ bool read_escape(std::uint32_t at, std::int32_t& value) const {
    const std::uint32_t escape = at < bytes ? byte(at) : 0;
    value = static_cast<std::int8_t>(escape);
    return escape == 0x80;
  }

  /// Reads all values but the DC coefficients. Returns false in all lanes for a corrupt tile.
  __device__ bool read_values(std::int16_t* values) const {
    const unsigned lane = threadIdx.x % 32;
    const std::uint32_t lower_lanes = (1U << lane) - 1;
    std::uint32_t at = nibbles_at + (count + 1) / 2;
    if (at > bytes) return false;
    std::uint32_t wide = 0;  // bits 2n, 2n + 1: values of round n that have two bytes
#pragma unroll 1
    for (std::uint32_t round = 0; round * 64 < count; ++round) {
      const std::uint32_t n = round * 64 + 2 * lane;
      std::uint32_t nibbles = n < count ? byte(nibbles_at + n / 2) : 0x11;
      if (n + 1 == count) nibbles |= 0x10U;
      const std::uint32_t low = nibbles & 15U;
      const std::uint32_t high = nibbles >> 4U;
      const std::uint32_t low_escapes = __ballot_sync(all_lanes, low == 0);
      const std::uint32_t high_escapes = __ballot_sync(all_lanes, high == 0);
      const std::uint32_t own =
          at + bits_in(low_escapes & lower_lanes) + bits_in(high_escapes & lower_lanes);
      std::int32_t first = static_cast<std::int32_t>(low ^ 8U) - 8;
      std::int32_t second = static_cast<std::int32_t>(high ^ 8U) - 8;
      if (low == 0 && read_escape(own, first)) wide |= 1U << 2 * round;
      if (high == 0 && read_escape(own + (low == 0 ? 1 : 0), second)) wide |= 2U << 2 * round;
      if (n < count)
        *reinterpret_cast<std::uint32_t*>(values + n) =
            static_cast<std::uint32_t>(first & 0xFFFF) | static_cast<std::uint32_t>(second) << 16U;
      at += bits_in(low_escapes) + bits_in(high_escapes);
    }
    if (__ballot_sync(all_lanes, wide != 0) != 0) at = read_wide(values, wide, at);
    __syncwarp(all_lanes);
    return at == bytes;
  }

  /// Reads the two-byte values, which begin at `at`. Returns the offset of their end.
  __device__ std::uint32_t read_wide(std::int16_t* values, std::uint32_t wide,
                                     std::uint32_t at) const {
    const unsigned lane = threadIdx.x % 32;
    const std::uint32_t lower_lanes = (1U << lane) - 1;
#pragma unroll 1
    for (std::uint32_t round = 0; round * 64 < count; ++round, wide >>= 2U) {
      const std::uint32_t first = __ballot_sync(all_lanes, (wide & 1U) != 0);
      const std::uint32_t second = __ballot_sync(all_lanes, (wide & 2U) != 0);
      std::uint32_t own = at + 2 * (bits_in(first & lower_lanes) + bits_in(second & lower_lanes));
#pragma unroll
      for (std::uint32_t n = 0; n < 2; ++n) {
        if ((wide >> n & 1U) == 0) continue;
        if (own + 2 <= bytes)
          values[round * 64 + 2 * lane + n] =
              static_cast<std::int16_t>(byte(own) | byte(own + 1) << 8U);
        own += 2;
      }
      at += 2 * (bits_in(first) + bits_in(second));
    }
    return at;
  }

  /// Writes the dequantised blocks. Bit n of the result tells whether block n has values below its
  /// first row.
  __device__ std::uint32_t fill_blocks(const LanePlaces& own, const std::uint8_t* steps,
                                       TileScratch& scratch) const {
    const unsigned lane = threadIdx.x % 32;
    const std::uint32_t lane_bit = 1U << lane;
    const std::uint32_t firsts = before | bits_in(low_mask) << 16U;
    std::uint32_t deep = 0;
#pragma unroll
    for (unsigned block = 0; block < blocks_of_tile; ++block) {
      const auto of_block = static_cast<int>(block);
      const std::uint32_t low = __shfl_sync(all_lanes, low_mask, of_block);
      const std::uint32_t high = __shfl_sync(all_lanes, high_mask, of_block);
      const std::uint32_t first = __shfl_sync(all_lanes, firsts, of_block);
      const std::int16_t* const values = scratch.values + (first & 0xFFFFU);
      std::int32_t value[2] = {};
      if ((low & lane_bit) != 0) value[0] = values[bits_in(low & (lane_bit - 1))];
      if ((high & lane_bit) != 0)
        value[1] = values[(first >> 16U) + bits_in(high & (lane_bit - 1))];
#pragma unroll
      for (unsigned half = 0; half < 2; ++half)
        scratch.blocks[block * block_stride + own.places[half]] =
            jpeg::wrapped(value[half] * own.steps[half]);
      const std::int32_t below = (value[0] & own.below[0]) | (value[1] & own.below[1]);
      if (__ballot_sync(all_lanes, below != 0) != 0) deep |= 1U << block;
    }
    __syncwarp(all_lanes);
    if (lane < blocks_of_tile)
      scratch.blocks[lane * block_stride] = jpeg::wrapped(dc * __ldg(steps));
    __syncwarp(all_lanes);
    return deep;
  }
};

/// Transforms the dequantised blocks of a tile to samples, in rows `stride` bytes apart.
__device__ inline void transform_blocks(TileScratch& scratch, std::uint32_t deep,
                                        std::uint8_t* samples, std::size_t stride) {
  const unsigned lane = threadIdx.x % 32;
#pragma unroll 1
  for (unsigned column = lane; column < blocks_of_tile * 8; column += 32) {
    transform_column(scratch.blocks + column / 8 * block_stride + column % 8,
                     (deep >> column / 8 & 1U) != 0);
  }
  __syncwarp(all_lanes);
#pragma unroll 1
  for (unsigned row = lane; row < blocks_of_tile * 8; row += 32) {
    transform_row(scratch.blocks + row / 8 * block_stride + row % 8 * 8,
                  samples + row % 8 * stride + row / 8 * 8);
  }
  __syncwarp(all_lanes);
}

/// Makes a tile's samples. Returns false in all lanes for a corrupt tile, whose samples are grey.
__device__ inline bool make_tile_samples(const std::uint8_t* tile, std::uint32_t bytes,
                                         const LanePlaces& own, const std::uint8_t* steps,
                                         TileScratch& scratch, std::uint8_t* samples,
                                         std::size_t stride) {
  TileReader reader(tile, bytes);
  if (!reader.read_masks() || !reader.read_values(scratch.values)) {
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      const unsigned n = half * 32 + threadIdx.x % 32;
      *reinterpret_cast<uint2*>(samples + n % 8 * stride + n / 8 * 8) =
          make_uint2(grey_sample * 0x01010101U, grey_sample * 0x01010101U);
    }
    return false;
  }
  transform_blocks(scratch, reader.fill_blocks(own, steps, scratch), samples, stride);
  return true;
}

}  // namespace millrace::kernels
