// SPDX-License-Identifier: Apache-2.0
//
// The conversion's kernel for images of three channels whose rows or memory are no whole vectors.
// For conversion_launch.h alone.
//
// A line is a row of a plane, or a row of interleaved output. It is cut into slots where the
// *output* has multiples of 16 bytes, so a thread writes 16 bytes at once, beside its neighbours';
// a line's first and last slot are written element by element, as far as they are the line's. The
// bytes that a slot comes from begin anywhere: they are read in aligned pieces and shifted into
// place in registers. A plane's slot uses every third byte of what it reads. The lines of a row's
// three channels follow one another, so memory is read once and the cache serves the other two.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pixel/conversion_kernel.h"

namespace millrace::kernels {

/// Two such blocks leave 64 registers for each thread.
inline constexpr unsigned row_threads = 512;

/// How many slots a line of so many elements has at most: as many as if it began with the last
/// element of a slot.
template <DType dtype>
constexpr std::size_t slots_of(std::size_t line_elements) {
  return (line_elements + 2 * (vector_elements<dtype> - 1)) / vector_elements<dtype>;
}

template <DType dtype, bool planes>
struct RowSlot {
  static constexpr std::int32_t elements = vector_elements<dtype>;
  /// The pieces of `elements` bytes that it is read in.
  static constexpr std::int32_t parts = planes ? 4 : 2;

  /// Where its 16 bytes lie.
  std::uint8_t* to;
  /// Its first element in the line; less than 0 if the line begins later.
  std::int32_t begin;
  std::int32_t line_elements;
  /// The line's channel, or that of the slot's first element.
  std::uint32_t channel;
  bool flip;
  /// The row's first byte in the source.
  std::int64_t row;

  __device__ RowSlot(const ConversionArguments& work, std::uint32_t group) {
    const std::uint32_t line = work.by_row.quotient(group);
    const std::uint32_t place = group - line * work.groups_per_row;
    const std::uint32_t image_row = planes ? line / vector_channels : line;
    const std::uint32_t sample = work.by_image.quotient(image_row);
    const auto width = static_cast<std::int32_t>(work.width);
    line_elements = planes ? width : width * static_cast<std::int32_t>(vector_channels);
    row = std::int64_t{image_row} * (width * static_cast<std::int32_t>(vector_channels));
    std::int64_t first = row;
    if constexpr (planes) {
      channel = line - image_row * vector_channels;
      // Behind the images before it: the planes before its own, and the rows before it.
      const std::int64_t plane = static_cast<std::int64_t>(work.height) * width;
      first = (std::int64_t{sample} * (vector_channels - 1) + channel) * plane +
              std::int64_t{image_row} * width;
    }
    to = work.destination + first * element_bytes<dtype>;
    const auto beside = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(to)) % 16U;
    begin = static_cast<std::int32_t>(place * elements - beside / element_bytes<dtype>);
    to += std::int64_t{place} * 16 - beside;
    if constexpr (!planes)
      channel = static_cast<std::uint32_t>(begin + vector_channels * elements) % vector_channels;
    flip = flipped(work, sample);
  }

  __device__ bool has(std::int32_t n) const { return begin + n >= 0 && begin + n < line_elements; }
  __device__ bool is_whole() const { return begin >= 0 && begin + elements <= line_elements; }

  /// The first byte of those that it comes from, in the source.
  __device__ std::int64_t from() const {
    if constexpr (!planes) return row + begin;
    const std::int32_t pixel = flip ? line_elements - elements - begin : begin;
    return row + (pixel * static_cast<std::int32_t>(vector_channels) +
                  static_cast<std::int32_t>(channel));
  }
  /// Those of interleaved output that is flipped are read one by one: the one of element n.
  __device__ std::int64_t flipped_from(std::int32_t n, std::uint32_t channel_of_n) const {
    return row + (line_elements - static_cast<std::int32_t>(vector_channels) - begin - n +
                  2 * static_cast<std::int32_t>(channel_of_n));
  }
};

/// Reads `parts` pieces of `bytes` bytes, which begin up to bytes - 1 before `from`.
template <unsigned bytes, unsigned parts>
__device__ void load_around(const std::uint8_t* from, std::uint32_t* words) {
  from -= reinterpret_cast<std::uintptr_t>(from) % bytes;
#pragma unroll
  for (unsigned part = 0; part < parts; ++part)
    load<bytes>(from + part * bytes, words + part * (bytes / 4));
}

/// Moves the words' bytes down by so many, less than `bytes`.
template <unsigned bytes, unsigned parts>
__device__ void shift_down(std::uint32_t by, std::uint32_t* words) {
  constexpr unsigned count = bytes / 4 * parts;
  if constexpr (bytes > 8) {
#pragma unroll
    for (unsigned n = 0; n + 2 < count; ++n) words[n] = (by & 8U) != 0 ? words[n + 2] : words[n];
  }
  if constexpr (bytes > 4) {
#pragma unroll
    for (unsigned n = 0; n + 1 < count; ++n) words[n] = (by & 4U) != 0 ? words[n + 1] : words[n];
  }
#pragma unroll
  for (unsigned n = 0; n + 1 < count; ++n)
    words[n] = __funnelshift_r(words[n], words[n + 1], (by & 3U) * 8);
}

/// Converts a slot element by element.
template <DType dtype, bool planes>
__device__ void convert_singly(const ConversionArguments& work, const RowSlot<dtype, planes>& slot,
                               const Lookup& lookup) {
  const auto width = static_cast<std::int32_t>(work.width);
  for (std::int32_t n = 0; n < slot.elements; ++n) {
    if (!slot.has(n)) continue;
    const auto element = static_cast<std::uint32_t>(slot.begin + n);
    const std::uint32_t channel = planes ? slot.channel : element % vector_channels;
    const auto x = static_cast<std::int32_t>(planes ? element : element / vector_channels);
    const std::int32_t from =
        (slot.flip ? width - 1 - x : x) * static_cast<std::int32_t>(vector_channels) +
        static_cast<std::int32_t>(channel);
    std::uint32_t value = __ldg(work.source + slot.row + from);
    if constexpr (dtype != DType::uint8) value = lookup(channel * words_per_channel, value);
    reinterpret_cast<Element<dtype>*>(slot.to)[n] = static_cast<Element<dtype>>(value);
  }
}

/// Writes a slot, or as much of it as is the line's.
template <DType dtype, bool planes>
__device__ void store(const RowSlot<dtype, planes>& slot, const uint4& out) {
  if (slot.is_whole()) {
    *reinterpret_cast<uint4*>(slot.to) = out;
    return;
  }
  const std::uint32_t words[] = {out.x, out.y, out.z, out.w};
#pragma unroll
  for (std::int32_t n = 0; n < slot.elements; ++n)
    if (slot.has(n))
      reinterpret_cast<Element<dtype>*>(slot.to)[n] = static_cast<Element<dtype>>(
          words[n * element_bytes<dtype> / 4] >> (n * element_bytes<dtype> % 4 * 8));
}

/// A thread takes as many slots at a time as make 16 bytes on their way that no other has.
template <DType dtype, bool planes>
__global__ void __launch_bounds__(row_threads, vector_blocks)
    by_rows(const __grid_constant__ ConversionArguments work) {
  using Slot = RowSlot<dtype, planes>;
  constexpr unsigned elements = vector_elements<dtype>;
  constexpr unsigned slots = 16 / elements;
  constexpr unsigned parts = Slot::parts;
  Lookup lookup{};
  if constexpr (dtype != DType::uint8) {
    __shared__ uint4 table[values_per_channel * vector_channels * copies / 4];
    lookup = build_table<dtype>(work, table);
  }
  const std::int64_t source_bytes =
      static_cast<std::int64_t>(work.rows * work.width * vector_channels);
  const std::uint32_t stride = gridDim.x * blockDim.x;
  for (std::uint32_t group = blockIdx.x * blockDim.x + threadIdx.x; group < work.groups;
       group += stride * slots) {
    std::uint32_t read[slots][elements];
    bool at_once[slots];
#pragma unroll
    for (unsigned n = 0; n < slots; ++n) {
      at_once[n] = false;
      if (group + n * stride >= work.groups) continue;
      const Slot slot(work, group + n * stride);
      // What is read beside the slot's own bytes must be the source's, too.
      const std::int64_t from = slot.from();
      if (!planes && slot.flip) {
        const std::uint32_t channels[vector_channels] = {slot.channel, (slot.channel + 1) % 3,
                                                         (slot.channel + 2) % 3};
        at_once[n] = slot.flipped_from(elements - 1, 0) >= 0 &&
                     slot.flipped_from(0, vector_channels - 1) < source_bytes;
        if (!at_once[n]) continue;
#pragma unroll
        for (unsigned e = 0; e < elements; ++e)
          read[n][e] = __ldg(work.source + slot.flipped_from(static_cast<std::int32_t>(e),
                                                             channels[e % vector_channels]));
      } else {
        at_once[n] =
            from >= std::int64_t{elements} && from + std::int64_t{elements * parts} <= source_bytes;
        if (at_once[n]) load_around<elements, parts>(work.source + from, read[n]);
      }
    }
#pragma unroll
    for (unsigned n = 0; n < slots; ++n) {
      if (group + n * stride >= work.groups) break;
      const Slot slot(work, group + n * stride);
      if (!at_once[n]) {
        convert_singly(work, slot, lookup);
        continue;
      }
      const auto by = static_cast<std::uint32_t>(
          reinterpret_cast<std::uintptr_t>(work.source + slot.from()) % elements);
      if constexpr (planes) {
        shift_down<elements, parts>(by, read[n]);
        const auto channel_words = [&slot](unsigned) { return slot.channel * words_per_channel; };
        const auto forward = [](unsigned e) { return e * vector_channels; };
        const auto backward = [](unsigned e) { return (elements - 1 - e) * vector_channels; };
        store(slot, slot.flip ? converted<dtype>(read[n], lookup, backward, channel_words)
                              : converted<dtype>(read[n], lookup, forward, channel_words));
      } else {
        if (slot.flip) {
#pragma unroll
          for (unsigned word = 0; word < elements / 4; ++word)
            read[n][word] = read[n][word * 4] | read[n][word * 4 + 1] << 8U |
                            read[n][word * 4 + 2] << 16U | read[n][word * 4 + 3] << 24U;
        } else {
          shift_down<elements, parts>(by, read[n]);
        }
        const std::uint32_t channels[vector_channels] = {slot.channel, (slot.channel + 1) % 3,
                                                         (slot.channel + 2) % 3};
        store(slot, converted<dtype>(
                        read[n], lookup, [](unsigned e) { return e; },
                        [&channels](unsigned e) {
                          return channels[e % vector_channels] * words_per_channel;
                        }));
      }
    }
  }
}

}  // namespace millrace::kernels
