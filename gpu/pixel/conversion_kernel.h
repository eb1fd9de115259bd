// SPDX-License-Identifier: Apache-2.0
//
// The conversion's kernels: the work of one block of threads. Included by conversion_launch.h.
//
// They convert every byte of an image to (value / 255 - mean) / std, rounded to the output's type.
// `ConversionWork::run_on_host` defines the results, and tests compare each kernel with it.
//
// The kernels read the results from a table. A byte has 256 values, so a channel has only 256
// results. Each block computes these once, with the function that the host uses, and keeps them in
// its shared memory. So the results are exact by construction, and an element takes a few
// instructions. Two IEEE 754 divisions would take longer than reading and writing an element's 2 to
// 5 bytes.
//
// Shared memory has 32 banks. Word w lies in bank w % 32, and a bank serves one word at a time. The
// 32 threads of a warp look up different values at once. By chance, up to 3 or 4 of them would lie
// in one bank and be served one after the other. So the table has 16 copies, and each thread reads
// one:
//
//   the word of (channel, value, copy)   (channel * 256 + value) * 16 + copy
//   the bank it lies in                  value % 2 * 16 + copy
//   the copy that a thread reads         its number % 16
//
// Only threads t and t + 16 of a warp read the same copy, so a bank conflict involves at most two
// threads. 256 values x 3 channels x 16 copies x 4 bytes are the 48 KiB that a block can use by
// default.
#pragma once

#include <millrace/conversion_work.h>
#include <millrace/detail/pixel_arithmetic.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pixel/divisor.h"

namespace millrace::kernels {

inline constexpr unsigned values_per_channel = 256;
inline constexpr unsigned vector_channels = 3;
inline constexpr unsigned copies = 16;
/// Threads of a block: one per entry of the table. A multiprocessor runs two such blocks: 1536
/// threads, 96 KiB of tables.
inline constexpr unsigned vector_threads = values_per_channel * vector_channels;
inline constexpr unsigned vector_blocks = 2;
/// Number of resident blocks for which the compiler limits the registers. A multiprocessor of T4
/// (sm_75) has 1024 threads.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr unsigned resident_blocks = 1;
#else
inline constexpr unsigned resident_blocks = vector_blocks;
#endif
inline constexpr unsigned any_threads = 256;
inline constexpr unsigned any_blocks = 8;
inline constexpr unsigned warp_threads = 32;

struct ConversionArguments {
  const std::uint8_t* source = nullptr;
  std::uint8_t* destination = nullptr;
  const std::uint8_t* flips = nullptr;
  float mean[Conversion::max_channels]{};
  float std[Conversion::max_channels]{};
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
  bool planes = false;
  /// Number of rows of all images together.
  std::size_t rows = 0;
  // The kernels for vectors use the members below. A group is 16 bytes of each channel's output
  // (planes), or 16 bytes of interleaved output. In the kernel for rows a group is a slot. Then
  // `groups_per_row` is the number of slots in a line, and `by_image` divides rows by the height.
  std::uint32_t groups = 0;
  std::uint32_t groups_per_image = 0;
  std::uint32_t groups_per_row = 0;
  Divisor by_image;
  Divisor by_row;
};

template <DType dtype>
inline constexpr unsigned element_bytes = dtype == DType::uint8     ? 1
                                          : dtype == DType::float32 ? 4
                                                                    : 2;
/// Number of elements in the 16 bytes that a thread writes at once.
template <DType dtype>
inline constexpr unsigned vector_elements = 16 / element_bytes<dtype>;

template <DType dtype>
using Element =
    std::conditional_t<dtype == DType::uint8, std::uint8_t,
                       std::conditional_t<dtype == DType::float32, std::uint32_t, std::uint16_t>>;

/// Bits of an entry of the table.
template <DType dtype>
__device__ std::uint32_t element_of(unsigned value, float mean, float std) {
  const float number = normalised(static_cast<std::uint8_t>(value), mean, std);
  if constexpr (dtype == DType::float32) return detail::bits_of(number);
  if constexpr (dtype == DType::float16) return to_float16(number);
  return to_bfloat16(number);
}

__device__ inline bool flipped(const ConversionArguments& work, std::size_t sample) {
  return work.flips != nullptr && __ldg(work.flips + sample) != 0;
}

/// The table, and the calling thread's copy of it. `channel_words` is channel x
/// `words_per_channel`. The bits below it hold the value's entry and the copy, so an OR adds them.
struct Lookup {
  const std::uint8_t* table;
  std::uint32_t copy;
  __device__ std::uint32_t operator()(unsigned channel_words, std::uint32_t value) const {
    // `at` is in bytes, so that one shift and one AND position the value's bits.
    const std::uint32_t at = (channel_words | copy) * 4 | value * (copies * 4);
    return *reinterpret_cast<const std::uint32_t*>(table + at);
  }
};
inline constexpr unsigned words_per_channel = values_per_channel * copies;

/// Builds the block's table. A thread computes entry n, which is value n % 256 of channel n / 256,
/// and writes its 16 copies, 4 at a time. Threads 2n and 2n + 1 begin 4 copies later than the two
/// threads before, so that neighbours have no bank conflict. Returns when all threads are done.
template <DType dtype>
__device__ Lookup build_table(const ConversionArguments& work, uint4* table) {
  for (unsigned entry = threadIdx.x; entry < values_per_channel * vector_channels;
       entry += blockDim.x) {
    const unsigned channel = entry / values_per_channel;
    const std::uint32_t word =
        element_of<dtype>(entry % values_per_channel, work.mean[channel], work.std[channel]);
    for (unsigned piece = 0; piece < copies / 4; ++piece)
      table[entry * (copies / 4) + ((piece + entry / 2) & (copies / 4 - 1))] =
          make_uint4(word, word, word, word);
  }
  __syncthreads();
  return {reinterpret_cast<const std::uint8_t*>(table), threadIdx.x % copies};
}

/// Reads `bytes` bytes at once; the address must be a multiple of `bytes`.
template <unsigned bytes>
__device__ void load(const std::uint8_t* from, std::uint32_t* words) {
  if constexpr (bytes == 4) {
    words[0] = __ldg(reinterpret_cast<const unsigned*>(from));
  } else if constexpr (bytes == 8) {
    const uint2 two = __ldg(reinterpret_cast<const uint2*>(from));
    words[0] = two.x;
    words[1] = two.y;
  } else {
    const uint4 four = __ldg(reinterpret_cast<const uint4*>(from));
    words[0] = four.x;
    words[1] = four.y;
    words[2] = four.z;
    words[3] = four.w;
  }
}

__device__ inline std::uint32_t byte_of(const std::uint32_t* words, unsigned index) {
  return (words[index / 4] >> (index % 4 * 8)) & 0xFFU;
}

/// Returns bytes `low` and `high` of the words as the lower half of a word.
__device__ inline std::uint32_t pair_of(const std::uint32_t* words, unsigned low, unsigned high) {
  return __byte_perm(words[low / 4], words[high / 4], low % 4 | (4 + high % 4) << 4U);
}

/// Makes 16 bytes of output. Element `n` comes from byte `byte(n)` of the words and belongs to the
/// channel whose table begins at `channel_words(n)`. All indices are compile-time constants, so
/// everything stays in registers.
template <DType dtype, typename Byte, typename ChannelWords>
__device__ uint4 converted(const std::uint32_t* words, const Lookup& lookup, Byte byte,
                           ChannelWords channel_words) {
  std::uint32_t out[4];
#pragma unroll
  for (unsigned word = 0; word < 4; ++word) {
    if constexpr (dtype == DType::uint8) {
      const unsigned n = word * 4;
      out[word] = __byte_perm(pair_of(words, byte(n), byte(n + 1)),
                              pair_of(words, byte(n + 2), byte(n + 3)), 0x5410);
    } else if constexpr (dtype == DType::float32) {
      out[word] = lookup(channel_words(word), byte_of(words, byte(word)));
    } else {
      const unsigned n = word * 2;
      out[word] = lookup(channel_words(n), byte_of(words, byte(n))) |
                  lookup(channel_words(n + 1), byte_of(words, byte(n + 1))) << 16U;
    }
  }
  return make_uint4(out[0], out[1], out[2], out[3]);
}

/// Converts uint8 [.., 3] to planes. A thread processes as many pixels as fill 16 bytes of each
/// plane. It makes three loads of up to 16 bytes and three stores of 16 bytes. The stores of a
/// warp's threads are adjacent. The loads of adjacent threads are three loads apart, but together
/// they use every fetched byte. Each thread has 12 to 48 bytes in flight, so a multiprocessor has
/// 18 to 72 KiB. That is more than reads need to keep the memory busy. For a flipped image a thread
/// reads the mirrored group, and takes its pixels from the last to the first.
template <DType dtype>
__global__ void __launch_bounds__(vector_threads, resident_blocks)
    to_planes(const __grid_constant__ ConversionArguments work) {
  constexpr unsigned pixels = vector_elements<dtype>;
  Lookup lookup{};
  if constexpr (dtype != DType::uint8) {
    __shared__ uint4 table[vector_threads * copies / 4];
    lookup = build_table<dtype>(work, table);
  }
  const std::size_t plane_bytes = work.height * work.width * element_bytes<dtype>;
  const std::uint32_t stride = gridDim.x * blockDim.x;
  for (std::uint32_t group = blockIdx.x * blockDim.x + threadIdx.x; group < work.groups;
       group += stride) {
    const std::uint32_t sample = work.by_image.quotient(group);
    const std::uint32_t place = group - sample * work.groups_per_image;
    const bool flip = flipped(work, sample);
    std::uint32_t from = group;
    if (flip) {
      const std::uint32_t row = work.by_row.quotient(place) * work.groups_per_row;
      from += row + row + work.groups_per_row - 1 - place - place;
    }
    const std::uint8_t* const source = work.source + std::size_t{from} * (pixels * vector_channels);
    std::uint32_t words[pixels * vector_channels / 4];
#pragma unroll
    for (unsigned part = 0; part < vector_channels; ++part)
      load<pixels>(source + part * pixels, words + part * (pixels / 4));
    std::uint8_t* destination =
        work.destination + sample * (vector_channels * plane_bytes) + std::size_t{place} * 16;
#pragma unroll
    for (unsigned channel = 0; channel < vector_channels; ++channel, destination += plane_bytes) {
      const auto channel_words = [channel](unsigned) { return channel * words_per_channel; };
      const auto forward = [channel](unsigned n) { return n * vector_channels + channel; };
      const auto backward = [channel](unsigned n) {
        return (pixels - 1 - n) * vector_channels + channel;
      };
      *reinterpret_cast<uint4*>(destination) =
          flip ? converted<dtype>(words, lookup, backward, channel_words)
               : converted<dtype>(words, lookup, forward, channel_words);
    }
  }
}

/// Converts uint8 [.., 3] to the same order. A thread writes pieces of 16 bytes, adjacent to those
/// of its neighbours. The source of a piece is 4, 8 or 16 adjacent bytes. In a flipped image the
/// thread reads them one by one, mostly from the cache. It issues the loads of several pieces, 16
/// bytes together, before it needs the first: 24 KiB in flight per multiprocessor. A piece is not a
/// multiple of a pixel. But the stride is a multiple of three pieces, so a thread's pieces always
/// begin with the same channel.
template <DType dtype>
__global__ void __launch_bounds__(vector_threads, resident_blocks)
    in_order(const __grid_constant__ ConversionArguments work) {
  constexpr unsigned elements = vector_elements<dtype>;
  constexpr unsigned pieces = 16 / elements;
  static_assert(vector_threads % vector_channels == 0);
  Lookup lookup{};
  if constexpr (dtype != DType::uint8) {
    __shared__ uint4 table[vector_threads * copies / 4];
    lookup = build_table<dtype>(work, table);
  }
  const std::uint32_t stride = gridDim.x * blockDim.x;
  const std::uint32_t begin = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned first = begin % vector_channels * elements % vector_channels;
  const unsigned channels[vector_channels] = {first, (first + 1) % vector_channels,
                                              (first + 2) % vector_channels};
  for (std::uint32_t group = begin; group < work.groups; group += stride * pieces) {
    // Instead of a piece beyond the end, the first piece is read again, and nothing is written.
    const auto at = [&](unsigned piece) {
      const std::uint32_t next = group + piece * stride;
      return next < work.groups ? next : group;
    };
    bool flip[pieces];
#pragma unroll
    for (unsigned piece = 0; piece < pieces; ++piece)
      flip[piece] = flipped(work, work.by_image.quotient(at(piece)));
    // A flipped piece uses a register for each byte.
    std::uint32_t read[pieces][elements];
#pragma unroll
    for (unsigned piece = 0; piece < pieces; ++piece) {
      if (!flip[piece]) {
        load<elements>(work.source + std::size_t{at(piece)} * elements, read[piece]);
        continue;
      }
      // Element e of a row, of channel c, is element 3 (width - 1) - e + 2 c of the row in the
      // source.
      const std::uint32_t place =
          at(piece) - work.by_image.quotient(at(piece)) * work.groups_per_image;
      const std::uint32_t row = work.by_row.quotient(place) * work.groups_per_row;
      const std::uint32_t mirrored = at(piece) - place + row + row + work.groups_per_row - place;
      const std::uint8_t* const last =
          work.source + std::size_t{mirrored} * elements - vector_channels;
      const std::uint8_t* const from[vector_channels] = {
          last + 2 * channels[0], last + 2 * channels[1], last + 2 * channels[2]};
#pragma unroll
      for (unsigned element = 0; element < elements; ++element)
        read[piece][element] = __ldg(from[element % vector_channels] - element);
    }
#pragma unroll
    for (unsigned piece = 0; piece < pieces; ++piece) {
      if (piece > 0 && group + piece * stride >= work.groups) break;
      if (flip[piece]) {
#pragma unroll
        for (unsigned word = 0; word < elements / 4; ++word)
          read[piece][word] = read[piece][word * 4] | read[piece][word * 4 + 1] << 8U |
                              read[piece][word * 4 + 2] << 16U | read[piece][word * 4 + 3] << 24U;
      }
      *reinterpret_cast<uint4*>(work.destination + std::size_t{at(piece)} * 16) = converted<dtype>(
          read[piece], lookup, [](unsigned n) { return n; },
          [&channels](unsigned n) { return channels[n % vector_channels] * words_per_channel; });
    }
  }
}

/// Converts all other shapes: a warp processes a row, its threads adjacent elements. The table has
/// one copy.
template <DType dtype>
__global__ void __launch_bounds__(any_threads)
    element_wise(const __grid_constant__ ConversionArguments work) {
  __shared__ std::uint32_t table[Conversion::max_channels * values_per_channel];
  if constexpr (dtype != DType::uint8) {
    for (unsigned entry = threadIdx.x; entry < work.channels * values_per_channel;
         entry += any_threads) {
      const unsigned channel = entry / values_per_channel;
      table[entry] =
          element_of<dtype>(entry % values_per_channel, work.mean[channel], work.std[channel]);
    }
    __syncthreads();
  }
  const auto element = [](std::size_t channel, std::uint8_t value) -> Element<dtype> {
    if constexpr (dtype == DType::uint8) return value;
    return static_cast<Element<dtype>>(table[channel * values_per_channel + value]);
  };
  auto* const destination = reinterpret_cast<Element<dtype>*>(work.destination);
  const std::size_t row_elements = work.width * work.channels;
  const unsigned lane = threadIdx.x % warp_threads;
  const std::size_t warps = std::size_t{gridDim.x} * (any_threads / warp_threads);
  for (std::size_t row = blockIdx.x * (any_threads / warp_threads) + threadIdx.x / warp_threads;
       row < work.rows; row += warps) {
    const std::size_t sample = row / work.height;
    const bool flip = flipped(work, sample);
    const std::uint8_t* const source = work.source + row * row_elements;
    if (work.planes) {
      const std::size_t plane = work.height * work.width;
      Element<dtype>* to =
          destination + sample * work.channels * plane + (row - sample * work.height) * work.width;
      for (std::size_t channel = 0; channel < work.channels; ++channel, to += plane)
        for (std::size_t x = lane; x < work.width; x += warp_threads)
          to[x] = element(
              channel, __ldg(source + (flip ? work.width - 1 - x : x) * work.channels + channel));
    } else {
      std::size_t channel = lane % work.channels;
      const std::size_t step = warp_threads % work.channels;
      for (std::size_t at = lane; at < row_elements; at += warp_threads) {
        const std::size_t from = flip ? row_elements - work.channels - at + 2 * channel : at;
        destination[row * row_elements + at] = element(channel, __ldg(source + from));
        channel += step;
        if (channel >= work.channels) channel -= work.channels;
      }
    }
  }
}

}  // namespace millrace::kernels
