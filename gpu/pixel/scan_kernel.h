// SPDX-License-Identifier: Apache-2.0
//
// The kernel that makes samples from the entropy-coded data of JPEGs. Included only by
// crop_kernel.h.
//
// A block of threads is one warp. It processes 32 segments (`CropScan`) at a time, one in each
// lane, MCU by MCU:
//
//   decode     Each lane decodes its MCU's symbols. It dequantises the coefficients into its own
//              blocks in shared memory.
//   transform  The lanes together transform the blocks of all 32 MCUs, eight lanes per block, and
//              write the samples that the crop needs.
//
// So coefficients stay in shared memory. The scan is untrusted: see scan_decoding.h.
#pragma once

#include <millrace/detail/scan_decoding.h>

#include <cstddef>
#include <cstdint>

#include "pixel/block_kernel.h"
#include "pixel/crop_sample.h"

namespace millrace::kernels {

inline constexpr unsigned scan_threads = 32;

/// The MCU of a lane's segment that is being processed.
struct LaneMcu {
  std::int32_t x;
  std::int32_t y;
  /// A bit for each block that has coefficients below its first row.
  std::uint32_t deep;
  std::uint16_t predictors[3];
  /// False after the segment's last MCU.
  bool there;
};

/// A warp's shared memory.
struct ScanScratch {
  static constexpr unsigned max_blocks = jpeg::ScanTables::max_blocks;
  /// Distance in int16 values from a lane's blocks to those of the next lane. It puts the columns
  /// of four lanes' blocks in different banks.
  static constexpr unsigned lane_stride = max_blocks * block_stride + 8;

  jpeg::ScanTables tables;
  BlockPlace places[max_blocks];
  /// Indexed by component and zigzag index. The low byte is the place in the block, row by row; the
  /// high byte is the quantisation step.
  std::uint16_t steps[3][values_of_block];
  LaneMcu mcus[scan_threads];
  alignas(16) std::int16_t blocks[scan_threads * lane_stride];

  __device__ std::int16_t* block(unsigned lane, unsigned number) {
    return blocks + lane * lane_stride + number * block_stride;
  }

  /// Sets the members that are the same for the whole scan.
  __device__ void begin(const CropHeader& crop) {
    const unsigned lane = threadIdx.x;
    tables.make(crop, part_of<CropScan::Code>(crop, crop.scan.codes_at), lane, scan_threads);
    __syncwarp(all_lanes);
    if (lane < tables.layout.blocks)
      places[lane] = block_place(crop, static_cast<std::int32_t>(lane));
    for (std::int32_t component = 0; component < crop.components; ++component)
      for (unsigned n = lane; n < values_of_block; n += scan_threads) {
        const unsigned place = zigzag_table.places[n];
        // The last entry of `zigzag_table` belongs to the DC coefficient.
        steps[component][(n + 1) % values_of_block] =
            static_cast<std::uint16_t>(place | unsigned{crop.planes[component].steps[place]} << 8U);
      }
    __syncwarp(all_lanes);
  }

  /// Sets all coefficients to 0.
  __device__ void clear() {
    static_assert(sizeof blocks % sizeof(uint4) == 0);
    auto* const vectors = reinterpret_cast<uint4*>(blocks);
    for (unsigned n = threadIdx.x; n < sizeof blocks / (sizeof(uint4)); n += scan_threads)
      vectors[n] = make_uint4(0, 0, 0, 0);
    __syncwarp(all_lanes);
  }

  /// Decodes the calling lane's MCU. Returns false if the data is invalid.
  __device__ bool decode(jpeg::WordBits& bits) {
    LaneMcu& mcu = mcus[threadIdx.x];
    std::int16_t* const own = block(threadIdx.x, 0);
    std::uint32_t deep = 0;
    const bool sound =
        jpeg::decode_mcu(tables, bits, mcu.predictors,
                         [&](bool is_stored, std::uint32_t number, std::uint32_t component,
                             std::uint32_t zigzag_index, std::int16_t value) {
                           const std::uint32_t entry = steps[component][zigzag_index];
                           const std::uint32_t place = entry & 0xFFU;
                           const std::int16_t product =
                               jpeg::wrapped(value * static_cast<std::int32_t>(entry >> 8U));
                           if (is_stored) own[number * block_stride + place] = product;
                           deep |= static_cast<std::uint32_t>(place >= 8 && value != 0) << number;
                         });
    mcu.deep = deep;
    return sound;
  }

  /// Transforms the blocks of all lanes' MCUs, and writes the samples that the crop needs.
  __device__ void transform(std::uint8_t* samples) {
    const unsigned row = threadIdx.x % 8;
    for (unsigned number = 0; number < tables.layout.blocks; ++number)
      for (unsigned owner = threadIdx.x / 8; owner < scan_threads; owner += scan_threads / 8)
        if (mcus[owner].there)
          transform_column(block(owner, number) + row, (mcus[owner].deep >> number & 1U) != 0);
    __syncwarp(all_lanes);
    for (unsigned number = 0; number < tables.layout.blocks; ++number) {
      const BlockPlace& place = places[number];
      for (unsigned owner = threadIdx.x / 8; owner < scan_threads; owner += scan_threads / 8) {
        std::size_t offset = 0;
        if (mcus[owner].there && place.find(mcus[owner].x, mcus[owner].y, offset))
          transform_row(block(owner, number) + row * 8, samples + offset + row * place.stride);
      }
    }
    __syncwarp(all_lanes);
  }
};

/// Makes the samples of a lane's segment, together with the other lanes. Returns false if the
/// segment has invalid data or a wrong end (`ends_right`). The blocks after invalid data are grey.
__device__ inline bool make_segment_samples(const CropHeader& crop, std::int32_t number,
                                            ScanScratch& scratch, std::uint8_t* samples) {
  CropScan::Segment segment{};
  const bool has_segment = number < crop.scan.segment_count;
  if (has_segment) segment = part_of<CropScan::Segment>(crop, crop.scan.segments_at)[number];
  jpeg::WordBits bits(part_of<std::uint32_t>(crop, crop.scan.words_at), crop.scan.word_count,
                      segment.begin_bit);
  LaneMcu& mcu = scratch.mcus[threadIdx.x];
  mcu.y = segment.mcu_y;
  for (unsigned n = 0; n < 3; ++n) mcu.predictors[n] = segment.begin_predictors[n];
  bool sound = true;
  for (std::int32_t n = 0; __ballot_sync(all_lanes, n < segment.mcus) != 0; ++n) {
    scratch.clear();
    mcu.x = segment.mcu_x + n;
    mcu.there = n < segment.mcus;
    mcu.deep = 0;
    if (mcu.there && sound) sound = scratch.decode(bits);
    __syncwarp(all_lanes);
    scratch.transform(samples);
  }
  return !has_segment || (sound && jpeg::ends_right(segment, bits, mcu.predictors));
}

__global__ void __launch_bounds__(scan_threads)
    decode_segments(const __grid_constant__ CropWork work) {
  __shared__ ScanScratch scratch;
  const CropSample sample(work);
  if (sample.crop == nullptr) return;
  const CropHeader& crop = *sample.crop;
  constexpr auto lanes = static_cast<std::int32_t>(scan_threads);
  if (sample.part * lanes >= crop.scan.segment_count) return;
  scratch.begin(crop);
  for (std::int32_t first = sample.part * lanes; first < crop.scan.segment_count;
       first += static_cast<std::int32_t>(crop_blocks) * lanes) {
    const bool sound = make_segment_samples(crop, first + static_cast<std::int32_t>(threadIdx.x),
                                            scratch, sample.scratch);
    if (!sound && sample.mark != nullptr) *sample.mark = 1;
  }
}

}  // namespace millrace::kernels
