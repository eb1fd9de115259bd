// SPDX-License-Identifier: Apache-2.0
//
// A sample of `CropWork` as its kernels see it. Included only by crop_kernel.h and scan_kernel.h.
#pragma once

#include <millrace/crop_work.h>
#include <millrace/detail/crop_layout.h>

#include <cstddef>
#include <cstdint>

#include "pixel/block_kernel.h"

namespace millrace::kernels {

/// Blocks of threads for each sample.
inline constexpr unsigned crop_blocks = 16;

/// The sample that a block of threads works for.
struct CropSample {
  /// Null if the sample cannot be made.
  const std::byte* input = nullptr;
  /// Null if the input is the image itself.
  const CropHeader* crop = nullptr;
  std::uint8_t* scratch = nullptr;
  std::uint8_t* image = nullptr;
  std::uint8_t* mark = nullptr;
  /// Index of the block among the sample's blocks of threads.
  std::int32_t part = 0;

  /// All threads of the block must call the constructor.
  __device__ explicit CropSample(const CropWork& work) {
    const std::uint32_t sample = blockIdx.x / crop_blocks;
    part = static_cast<std::int32_t>(blockIdx.x % crop_blocks);
    image = work.images + sample * image_bytes_of(work);
    if (work.marks != nullptr) mark = work.marks + sample;
    // Each lane reads how much scratch some of the samples need.
    std::uint32_t begin = 0;
    std::uint32_t own = 0;
#pragma unroll 1
    for (std::uint32_t other = threadIdx.x % 32; other < work.samples; other += 32) {
      const std::uint32_t units = scratch_units(work, other);
      if (other < sample) begin += units;
      if (other == sample) own = units;
    }
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) begin += __shfl_xor_sync(all_lanes, begin, lanes);
    const std::uint32_t end = begin + __shfl_sync(all_lanes, own, static_cast<int>(sample % 32));
    if (end * scratch_unit > work.scratch_bytes) return;
    input = input_of(work, sample);
    crop = crop_of(work, sample);
    scratch = reinterpret_cast<std::uint8_t*>(work.scratch) + begin * scratch_unit;
  }
};

}  // namespace millrace::kernels
