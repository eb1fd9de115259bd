// SPDX-License-Identifier: Apache-2.0
//
// Kernels that make resized crops from stored coefficients and from JPEGs, and the function that
// launches them. Included only by kernels.cu. Tests compare them with `CropWork::run_on_host`.
//
// Four kernels run one after the other. Each uses `crop_blocks` blocks of threads for an image.
// They stride over its rows, or over its segments (`CropScan`):
//
//   transform_tiles   makes samples of Y, Cb and Cr in the scratch, from stored coefficients. Marks
//                     images whose input is missing or corrupt.
//   decode_segments   does the same from a JPEG's scan.
//   resize_rows       converts a row to pixels in shared memory, and resamples it horizontally into
//                     the scratch. If the vertical pass comes first, the pixels are weighted sums
//                     of source rows, and the result is a row of the image. Crops with exchanged
//                     rows and columns are exchanged here, as they are read.
//   resize_columns    resamples rows of the scratch vertically into the image. Copies images that
//                     came as pixels.
#pragma once

#include <cuda_runtime_api.h>

#include <type_traits>

#include "pixel/crop_sample.h"
#include "pixel/enqueue.h"
#include "pixel/scan_kernel.h"
#include "pixel/source_pixels.h"
#include "pixel/tile_kernel.h"

namespace millrace::kernels {

inline constexpr unsigned crop_threads = 256;

/// Weights of `count` source pixels for one output pixel, along one axis. `begin` is the first
/// source pixel.
struct PixelWeights {
  std::int32_t begin;
  std::int32_t count;
  const std::int32_t* weights;

  __device__ PixelWeights(std::int32_t first, std::int32_t taps, const std::int32_t* values)
      : begin(first), count(taps), weights(values) {}
  __device__ PixelWeights(const CropHeader& crop, const CropHeader::Axis& axis, std::int32_t pixel,
                          std::int32_t source)
      : begin(__ldg(part_of<std::int32_t>(crop, axis.begins_at) + pixel)),
        count(axis.taps < source - begin ? axis.taps : source - begin),
        weights(part_of<std::int32_t>(crop, axis.weights_at) + pixel * axis.stride) {}
};

__device__ inline jpeg::Rgb unpacked(std::uint32_t pixel) {
  return {static_cast<std::uint8_t>(pixel), static_cast<std::uint8_t>(pixel >> 8U),
          static_cast<std::uint8_t>(pixel >> 16U)};
}

/// Copies an image. The destination may have any alignment.
__device__ inline void copy_image(const CropWork& work, const CropSample& sample) {
  const auto* const from = reinterpret_cast<const std::uint8_t*>(sample.input);
  const std::size_t bytes = image_bytes_of(work);
  for (std::size_t n = static_cast<std::size_t>(sample.part) * crop_threads + threadIdx.x;
       n < bytes; n += std::size_t{crop_blocks} * crop_threads)
    sample.image[n] = __ldg(from + n);
}

__global__ void __launch_bounds__(tile_threads)
    transform_tiles(const __grid_constant__ CropWork work) {
  __shared__ TileScratch warps[tile_warps];
  const CropSample sample(work);
  const auto mark = [&] {
    if (sample.mark != nullptr && threadIdx.x % 32 == 0) *sample.mark = 1;
  };
  if (sample.input == nullptr) mark();
  if (sample.crop == nullptr || sample.crop->scan.segment_count > 0) return;
  const CropHeader& crop = *sample.crop;
  const auto warp = static_cast<std::int32_t>(threadIdx.x / 32);
  for (std::int32_t component = 0; component < crop.components; ++component) {
    const CropHeader::Plane& plane = crop.planes[component];
    const std::size_t stride = plane_stride(plane);
    std::uint8_t* const samples = sample.scratch + plane_at(crop, component);
    const LanePlaces own(plane.steps);
#pragma unroll 1
    for (std::int32_t row = sample.part; row < plane.rows;
         row += static_cast<std::int32_t>(crop_blocks)) {
      const auto* const ends =
          part_of<std::uint32_t>(crop, part_of<std::uint32_t>(crop, plane.rows_at)[row]);
      const auto* const tiles = reinterpret_cast<const std::uint8_t*>(ends + plane.tiles);
      for (std::int32_t tile = warp; tile < plane.tiles;
           tile += static_cast<std::int32_t>(tile_warps)) {
        const std::uint32_t begin = tile == 0 ? 0 : __ldg(ends + tile - 1);
        if (!make_tile_samples(tiles + begin, __ldg(ends + tile) - begin, own, plane.steps,
                               warps[warp],
                               samples + static_cast<std::size_t>(row) * tile_height * stride +
                                   static_cast<std::size_t>(tile) * tile_width,
                               stride))
          mark();
      }
    }
  }
}

/// Fixed-point weight 1, for a row that is used unchanged.
__device__ constexpr std::int32_t whole_weight = 1 << 22;

/// Makes a row of pixels, which are weighted sums of a column's pixels.
template <bool exchanged>
__device__ void make_row(const SourcePixels& pixels, const PixelWeights& down, std::int32_t width,
                         std::uint32_t* row) {
#pragma unroll 1
  for (auto x = static_cast<std::int32_t>(threadIdx.x); x < width;
       x += static_cast<std::int32_t>(crop_threads)) {
    WeightedPixels sum;
#pragma unroll 1
    for (std::int32_t from = 0; from < down.count; ++from)
      sum.add(pixels.at<exchanged>(x, down.begin + from), __ldg(down.weights + from));
    const jpeg::Rgb pixel = sum.value();
    row[x] = pixel.red | std::uint32_t{pixel.green} << 8U | std::uint32_t{pixel.blue} << 16U;
  }
}

__global__ void __launch_bounds__(crop_threads) resize_rows(const __grid_constant__ CropWork work) {
  __shared__ std::uint32_t row[CropHeader::max_width];
  const CropSample sample(work);
  if (sample.crop == nullptr) return;
  const CropHeader& crop = *sample.crop;
  const SourcePixels pixels(crop, sample.scratch);
  const bool vertical_first = crop.vertical_first != 0;
  const std::int32_t width = crop.width;
  const std::int32_t rows = vertical_first ? work.height : crop.height;
  std::uint8_t* const made =
      vertical_first ? sample.image : sample.scratch + plane_at(crop, crop.components);
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
#pragma unroll 1
  for (std::int32_t y = sample.part; y < rows; y += static_cast<std::int32_t>(crop_blocks)) {
    const PixelWeights down = vertical_first ? PixelWeights(crop, crop.vertical, y, crop.height)
                                             : PixelWeights{y, 1, &whole_weight};
    if (crop.exchanged != 0)
      make_row<true>(pixels, down, width, row);
    else
      make_row<false>(pixels, down, width, row);
    __syncthreads();
    std::uint8_t* const to = made + static_cast<std::ptrdiff_t>(y) * 3 * work.width;
#pragma unroll 1
    for (std::int32_t x = thread; x < work.width; x += static_cast<std::int32_t>(crop_threads)) {
      const PixelWeights across(crop, crop.horizontal, x, width);
      WeightedPixels sum;
#pragma unroll 1
      for (std::int32_t tap = 0; tap < across.count; ++tap)
        sum.add(unpacked(row[across.begin + tap]), __ldg(across.weights + tap));
      const jpeg::Rgb pixel = sum.value();
      to[3 * x] = pixel.red;
      to[3 * x + 1] = pixel.green;
      to[3 * x + 2] = pixel.blue;
    }
    __syncthreads();
  }
}

/// Resamples rows of the scratch vertically into the image. A thread makes `count` adjacent bytes
/// at a time: 4, or 1 if rows are not aligned to 4 bytes.
template <std::int32_t count>
__device__ void pass_columns(const CropWork& work, const CropSample& sample) {
  using Bytes = std::conditional_t<count == 4, std::uint32_t, std::uint8_t>;
  const CropHeader& crop = *sample.crop;
  const std::int32_t row_values = 3 * work.width / count;
  const auto* const between =
      reinterpret_cast<const Bytes*>(sample.scratch + plane_at(crop, crop.components));
  auto* const image = reinterpret_cast<Bytes*>(sample.image);
#pragma unroll 1
  for (std::int32_t y = sample.part; y < work.height; y += static_cast<std::int32_t>(crop_blocks)) {
    const PixelWeights down(crop, crop.vertical, y, crop.height);
#pragma unroll 1
    for (auto n = static_cast<std::int32_t>(threadIdx.x); n < row_values;
         n += static_cast<std::int32_t>(crop_threads)) {
      const Bytes* from = between + static_cast<std::ptrdiff_t>(down.begin) * row_values + n;
      WeightedSum sums[count];
#pragma unroll 1
      for (std::int32_t tap = 0; tap < down.count; ++tap, from += row_values) {
        const std::uint32_t values = *from;
        const std::int32_t weight = __ldg(down.weights + tap);
#pragma unroll
        for (std::int32_t byte = 0; byte < count; ++byte)
          sums[byte].add(static_cast<std::uint8_t>(values >> (8 * byte)), weight);
      }
      std::uint32_t values = 0;
#pragma unroll
      for (std::int32_t byte = 0; byte < count; ++byte)
        values |= std::uint32_t{sums[byte].value()} << (8 * byte);
      image[static_cast<std::ptrdiff_t>(y) * row_values + n] = static_cast<Bytes>(values);
    }
  }
}

__global__ void __launch_bounds__(crop_threads)
    resize_columns(const __grid_constant__ CropWork work) {
  const CropSample sample(work);
  if (sample.input == nullptr) return;
  if (sample.crop == nullptr) return copy_image(work, sample);
  if (sample.crop->vertical_first != 0) return;
  if (work.width % 4 == 0 && reinterpret_cast<std::uintptr_t>(work.images) % 4 == 0)
    pass_columns<4>(work, sample);
  else
    pass_columns<1>(work, sample);
}

inline cudaError_t load_crop() {
  for (const auto kernel : {transform_tiles, decode_segments, resize_rows, resize_columns})
    if (const cudaError_t status = load_kernel(kernel); status != cudaSuccess) return status;
  return cudaSuccess;
}

inline cudaError_t launch_crop(const CropWork& work, cudaStream_t stream) {
  if (work.samples == 0 || work.height <= 0 || work.width <= 0) return cudaSuccess;
  if (work.samples > CropWork::max_samples) return cudaErrorInvalidValue;
  const std::size_t blocks = work.samples * crop_blocks;
  cudaError_t status = enqueue(transform_tiles, blocks, tile_threads, work, stream);
  if (status == cudaSuccess) status = enqueue(decode_segments, blocks, scan_threads, work, stream);
  if (status == cudaSuccess) status = enqueue(resize_rows, blocks, crop_threads, work, stream);
  if (status == cudaSuccess) status = enqueue(resize_columns, blocks, crop_threads, work, stream);
  return status;
}

}  // namespace millrace::kernels
