// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pixel/kernel_launch.h"
#include "pixel/mix_kernel.h"

namespace millrace {

cudaError_t load_mix() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernels::erase_and_mix));
}

cudaError_t launch_mix(const MixWork& work, cudaStream_t stream) {
  if (work.channels == 0 || work.channels > Conversion::max_channels) return cudaErrorInvalidValue;
  const std::size_t pixels = (work.samples + 1) / 2 * work.height * work.width;
  if (pixels == 0 || (work.erases == nullptr && work.mixes == nullptr)) return cudaSuccess;
  kernels::MixArguments arguments;
  arguments.images = work.images;
  arguments.flips = work.flips;
  arguments.erases = work.erases;
  arguments.mixes = work.mixes;
  arguments.samples = work.samples;
  arguments.height = work.height;
  arguments.width = work.width;
  arguments.channels = work.channels;
  // More than run at once: blocks whose pair stays as it is end soon.
  constexpr std::size_t most_blocks = 65536;
  const auto blocks = static_cast<unsigned>(
      std::min((pixels + kernels::mix_threads - 1) / kernels::mix_threads, most_blocks));
  void* parameters[] = {&arguments};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernels::erase_and_mix), dim3(blocks),
                          dim3(kernels::mix_threads), parameters, 0, stream);
}

}  // namespace millrace
