// SPDX-License-Identifier: Apache-2.0
//
// Choice of the conversion kernel and the number of threads. Included only by kernels.cu.
#pragma once

#include <cuda_runtime_api.h>
#include <millrace/conversion_work.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pixel/conversion_kernel.h"
#include "pixel/conversion_rows_kernel.h"
#include "pixel/enqueue.h"

namespace millrace::kernels {

struct ConversionLaunch {
  void (*kernel)(ConversionArguments) = nullptr;
  std::size_t blocks = 0;
  unsigned threads = 0;
};

inline bool aligned(const void* pointer, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

inline std::size_t blocks_for(std::size_t items, std::size_t items_per_block) {
  return (items + items_per_block - 1) / items_per_block;
}

/// Number of vectors if the work consists of whole vectors; else 0.
template <DType dtype>
std::size_t whole_vectors(const ConversionWork& work) {
  constexpr std::size_t elements = vector_elements<dtype>;
  constexpr std::size_t most = std::size_t{1} << 31U;
  if (work.channels != vector_channels || work.width % elements != 0) return 0;
  if (!aligned(work.source, elements) || !aligned(work.destination, 16)) return 0;
  const std::size_t pieces =
      work.width / elements * (work.layout == ImageLayout::nchw ? 1 : work.channels);
  // Kernels add multiples of their number of threads to a vector's index; the sum must stay below
  // 2^32.
  return pieces >= most / work.height / work.samples ? 0 : pieces * work.height * work.samples;
}

/// Returns whether the kernel for rows can do the work. If so, sets its arguments.
template <DType dtype>
bool by_slots(const ConversionWork& work, ConversionArguments& arguments) {
  // Byte offsets in the source, and slot indices plus the kernel's stride, must stay below 2^31.
  constexpr std::size_t most = std::size_t{1} << 30U;
  if (work.channels != vector_channels) return false;
  if (!aligned(work.destination, element_bytes<dtype>)) return false;
  if (work.width > most / vector_channels / work.height / work.samples) return false;
  if (work.flips == nullptr) {
    // Without flips an image can be treated as one row.
    arguments.width *= arguments.height;
    arguments.height = 1;
    arguments.rows = work.samples;
  }
  const bool planes = work.layout == ImageLayout::nchw;
  const std::size_t slots = slots_of<dtype>(arguments.width * (planes ? 1 : vector_channels));
  const std::size_t lines = arguments.rows * (planes ? vector_channels : 1);
  arguments.groups = static_cast<std::uint32_t>(lines * slots);
  arguments.groups_per_row = static_cast<std::uint32_t>(slots);
  arguments.by_row = Divisor(arguments.groups_per_row);
  arguments.by_image = Divisor(static_cast<std::uint32_t>(arguments.height));
  return true;
}

/// Chooses the kernel, and completes its arguments.
template <DType dtype>
ConversionLaunch launch_of(const ConversionWork& work, ConversionArguments& arguments) {
  const bool planes = work.layout == ImageLayout::nchw;
  const std::size_t groups = whole_vectors<dtype>(work);
  if (groups == 0) {
    if (by_slots<dtype>(work, arguments))
      return {planes ? by_rows<dtype, true> : by_rows<dtype, false>,
              blocks_for(arguments.groups, row_threads), row_threads};
    return {element_wise<dtype>, blocks_for(arguments.rows, any_threads / warp_threads),
            any_threads};
  }
  arguments.groups = static_cast<std::uint32_t>(groups);
  arguments.groups_per_image = static_cast<std::uint32_t>(groups / work.samples);
  arguments.groups_per_row = static_cast<std::uint32_t>(groups / arguments.rows);
  arguments.by_image = Divisor(arguments.groups_per_image);
  arguments.by_row = Divisor(arguments.groups_per_row);
  return {planes ? to_planes<dtype> : in_order<dtype>, blocks_for(groups, vector_threads),
          vector_threads};
}

inline ConversionLaunch launch_of(const ConversionWork& work, ConversionArguments& arguments) {
  switch (work.dtype) {
    case DType::uint8:
      return launch_of<DType::uint8>(work, arguments);
    case DType::float16:
      return launch_of<DType::float16>(work, arguments);
    case DType::bfloat16:
      return launch_of<DType::bfloat16>(work, arguments);
    case DType::float32:
      return launch_of<DType::float32>(work, arguments);
    default:
      return {};
  }
}

template <DType dtype>
cudaError_t load_conversions_to() {
  for (const auto kernel : {to_planes<dtype>, in_order<dtype>, by_rows<dtype, true>,
                            by_rows<dtype, false>, element_wise<dtype>})
    if (const cudaError_t status = load_kernel(kernel); status != cudaSuccess) return status;
  return cudaSuccess;
}

inline cudaError_t load_conversions() {
  for (const auto load_to :
       {load_conversions_to<DType::uint8>, load_conversions_to<DType::float16>,
        load_conversions_to<DType::bfloat16>, load_conversions_to<DType::float32>})
    if (const cudaError_t status = load_to(); status != cudaSuccess) return status;
  return cudaSuccess;
}

inline cudaError_t launch_conversion(const ConversionWork& work, cudaStream_t stream) {
  if (work.channels == 0 || work.channels > Conversion::max_channels) return cudaErrorInvalidValue;
  if (work.samples == 0 || work.height == 0 || work.width == 0) return cudaSuccess;
  ConversionArguments arguments;
  arguments.source = work.source;
  arguments.destination = static_cast<std::uint8_t*>(work.destination);
  arguments.flips = work.flips;
  std::copy(work.mean.begin(), work.mean.end(), arguments.mean);
  std::copy(work.std.begin(), work.std.end(), arguments.std);
  arguments.height = work.height;
  arguments.width = work.width;
  arguments.channels = work.channels;
  arguments.planes = work.layout == ImageLayout::nchw;
  arguments.rows = work.samples * work.height;
  const ConversionLaunch launch = launch_of(work, arguments);
  if (launch.kernel == nullptr) return cudaErrorInvalidValue;

  // Both calls use the runtime's state on the host; neither waits.
  int device = 0;
  int multiprocessors = 0;
  if (const cudaError_t status = cudaGetDevice(&device); status != cudaSuccess) return status;
  if (const cudaError_t status =
          cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
      status != cudaSuccess)
    return status;
  // Launches at most as many blocks as can run at once. Each builds its table once and strides over
  // the work.
  const unsigned at_once = launch.threads == any_threads ? any_blocks : vector_blocks;
  return enqueue(launch.kernel,
                 std::min(launch.blocks, static_cast<std::size_t>(multiprocessors) * at_once),
                 launch.threads, arguments, stream);
}

}  // namespace millrace::kernels
