// SPDX-License-Identifier: Apache-2.0
//
// The kernel that erases and mixes, and its launch. For kernels.cu alone. It is compared with
// `MixWork::run_on_host`.
//
// It changes images in place, before the conversion reads them, so the conversion's kernels stay as
// they are. A thread has a pixel of sample n and the pixel of its partner that is mixed with it.
// The partner's pixel is mixed with that one and no other, so no thread reads what another writes.
#pragma once

#include <cuda_runtime_api.h>
#include <millrace/detail/mix_arithmetic.h>
#include <millrace/mix_work.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pixel/enqueue.h"

namespace millrace::kernels {

inline constexpr unsigned mix_threads = 256;

struct MixArguments {
  static constexpr bool has_barrier = false;

  std::uint8_t* images = nullptr;
  const std::uint8_t* flips = nullptr;
  const std::int32_t* erases = nullptr;
  const std::int32_t* mixes = nullptr;
  std::size_t samples = 0;
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
};

/// Pixel (x, y) of a sample, as it is stored and as it is flipped.
struct MixPixel {
  std::uint8_t* at = nullptr;
  const std::int32_t* erase = nullptr;
  bool erased = false;

  __device__ MixPixel(const MixArguments& work, std::size_t sample, bool mirrored, std::int32_t x,
                      std::int32_t y) {
    const std::size_t stored =
        mirrored ? work.width - 1 - static_cast<std::size_t>(x) : static_cast<std::size_t>(x);
    at =
        work.images + ((sample * work.height + static_cast<std::size_t>(y)) * work.width + stored) *
                          work.channels;
    if (work.erases == nullptr) return;
    erase = work.erases + sample * MixWork::erase_numbers;
    erased = lies_in(erase, x, y);
  }
  __device__ std::uint8_t value(std::size_t channel) const {
    return erased ? static_cast<std::uint8_t>(erase[4 + channel]) : at[channel];
  }
};

__global__ void __launch_bounds__(mix_threads)
    erase_and_mix(const __grid_constant__ MixArguments work) {
  const std::size_t plane = work.height * work.width;
  const std::size_t pixels = (work.samples + 1) / 2 * plane;
  const std::size_t stride = std::size_t{gridDim.x} * mix_threads;
  for (std::size_t pixel = std::size_t{blockIdx.x} * mix_threads + threadIdx.x; pixel < pixels;
       pixel += stride) {
    const std::size_t one = pixel / plane;
    const std::size_t two = work.samples - 1 - one;
    const std::size_t place = pixel - one * plane;
    const auto y = static_cast<std::int32_t>(place / work.width);
    const auto x = static_cast<std::int32_t>(place % work.width);
    const bool flip_one = work.flips != nullptr && work.flips[one] != 0;
    const bool flip_two = work.flips != nullptr && work.flips[two] != 0;
    const MixPixel first(work, one, flip_one, x, y);
    const MixPixel second(work, two, flip_two, x, y);
    const std::int32_t* const mix_one =
        work.mixes == nullptr ? nullptr : work.mixes + one * MixWork::mix_numbers;
    const std::int32_t* const mix_two =
        work.mixes == nullptr ? nullptr : work.mixes + two * MixWork::mix_numbers;
    const bool mixes = mix_one != nullptr && one != two && !(unmixed(mix_one) && unmixed(mix_two));
    if (!mixes && !first.erased && !second.erased) continue;
    const bool in_one = mixes && lies_in(mix_one + 1, x, y);
    const bool in_two = mixes && lies_in(mix_two + 1, x, y);
    for (std::size_t channel = 0; channel < work.channels; ++channel) {
      const std::uint8_t own = first.value(channel);
      const std::uint8_t other = second.value(channel);
      if (!mixes) {
        first.at[channel] = own;
        if (two != one) second.at[channel] = other;
        continue;
      }
      first.at[channel] =
          in_one ? other : mixed(own, other, static_cast<std::uint16_t>(mix_one[0]));
      second.at[channel] = in_two ? own : mixed(other, own, static_cast<std::uint16_t>(mix_two[0]));
    }
  }
}

inline cudaError_t load_mix() { return load_kernel(erase_and_mix); }

inline cudaError_t launch_mix(const MixWork& work, cudaStream_t stream) {
  if (work.channels == 0 || work.channels > Conversion::max_channels) return cudaErrorInvalidValue;
  const std::size_t pixels = (work.samples + 1) / 2 * work.height * work.width;
  if (pixels == 0 || (work.erases == nullptr && work.mixes == nullptr)) return cudaSuccess;
  MixArguments arguments;
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
  return enqueue(erase_and_mix, std::min((pixels + mix_threads - 1) / mix_threads, most_blocks),
                 mix_threads, arguments, stream);
}

}  // namespace millrace::kernels
