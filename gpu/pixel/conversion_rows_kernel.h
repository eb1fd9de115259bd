// SPDX-License-Identifier: Apache-2.0
//
// The conversion's kernel for three-channel images whose rows are not whole vectors of 16 output
// bytes, or whose memory is not aligned to them. Included only by conversion_launch.h.
//
// A line is a row of a plane, or a row of interleaved output. It is divided into slots at multiples
// of 16 bytes of the *output*. So a thread writes 16 bytes at once, and adjacent threads write
// adjacent bytes. If a line begins or ends inside a slot, the slot's elements that belong to the
// line are written one by one. The source bytes of a slot are not aligned: they are read in aligned
// pieces and shifted into place in registers. A plane's slot uses every third byte that it reads.
// The lines of a row's three channels have adjacent numbers. So the first line reads from memory,
// and the cache serves the other two.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pixel/conversion_kernel.h"

namespace millrace::kernels {

/// Threads of a block. Two blocks on a multiprocessor leave 48 registers for each thread.
inline constexpr unsigned row_threads = 640;

/// Maximal number of slots in a line of `line_elements` elements. A line reaches it if it begins
/// with the last element of a slot.
template <DType dtype>
constexpr std::size_t slots_of(std::size_t line_elements) {
  return (line_elements + 2 * (vector_elements<dtype> - 1)) / vector_elements<dtype>;
}

template <DType dtype, bool planes>
struct RowSlot {
  static constexpr std::int32_t elements = vector_elements<dtype>;
  static constexpr std::int32_t pixel_bytes = vector_channels;
  /// Number of aligned pieces, of `elements` bytes each, in which the slot's source is read.
  static constexpr std::int32_t parts = planes ? 4 : 2;

  /// Address of the slot's 16 output bytes.
  std::uint8_t* to = nullptr;
  /// Index in the line of the slot's first element. Negative if the line begins inside the slot.
  std::int32_t begin = 0;
  /// The line's channel, or the channel of the slot's first element.
  std::uint32_t channel = 0;
  bool flip = false;
  /// Offset of the slot's first source byte. For interleaved output: of the source byte at the same
  /// position in the row.
  std::int32_t from = 0;

  RowSlot() = default;
  __device__ RowSlot(const ConversionArguments& work, std::uint32_t group) {
    const std::uint32_t line = work.by_row.quotient(group);
    const std::uint32_t place = group - line * work.groups_per_row;
    const std::uint32_t row = planes ? line / vector_channels : line;
    const std::uint32_t sample = work.by_image.quotient(row);
    const auto width = static_cast<std::uint32_t>(work.width);
    flip = flipped(work, sample);
    // Index of the line's first element in the output: whole planes of this and other samples
    // precede it.
    std::uint32_t first = row * width * vector_channels;
    if constexpr (planes) {
      channel = line - row * vector_channels;
      const std::uint32_t plane = static_cast<std::uint32_t>(work.height) * width;
      first = (sample * (vector_channels - 1) + channel) * plane + row * width;
    }
    const std::uint32_t beside =
        (static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(work.destination)) /
             element_bytes<dtype> +
         first) %
        elements;
    begin = static_cast<std::int32_t>(place * elements - beside);
    to = work.destination +
         (std::int64_t{first} + begin) * static_cast<std::int64_t>(element_bytes<dtype>);
    from = static_cast<std::int32_t>(row * width) * pixel_bytes;
    if constexpr (planes) {
      const std::int32_t x = flip ? line_elements(work) - elements - begin : begin;
      from += x * pixel_bytes + static_cast<std::int32_t>(channel);
    } else {
      channel = static_cast<std::uint32_t>(begin + pixel_bytes * elements) % vector_channels;
      from += begin;
    }
  }

  __device__ static std::int32_t line_elements(const ConversionArguments& work) {
    return static_cast<std::int32_t>(work.width) * (planes ? 1 : pixel_bytes);
  }
  /// Offset of the source byte of element n.
  __device__ std::int32_t source_of(const ConversionArguments& work, std::int32_t n,
                                    std::uint32_t channel_of_n) const {
    if constexpr (planes) return from + (flip ? elements - 1 - n : n) * pixel_bytes;
    const std::int32_t mirrored = from - 2 * begin + line_elements(work) - pixel_bytes;
    return flip ? mirrored - n + 2 * static_cast<std::int32_t>(channel_of_n) : from + n;
  }
};

/// Reads `parts` aligned pieces of `bytes` bytes. The first one contains the byte at `from`.
template <unsigned bytes, unsigned parts>
__device__ void load_around(const std::uint8_t* from, std::uint32_t* words) {
  from -= reinterpret_cast<std::uintptr_t>(from) % bytes;
#pragma unroll
  for (unsigned part = 0; part < parts; ++part)
    load<bytes>(from + part * bytes, words + part * (bytes / 4));
}

/// Shifts the words' bytes down by `by` % `bytes`.
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
#pragma unroll 1
  for (std::int32_t n = 0; n < slot.elements; ++n) {
    if (slot.begin + n < 0 || slot.begin + n >= slot.line_elements(work)) continue;
    const std::uint32_t channel =
        planes ? slot.channel : (slot.channel + static_cast<std::uint32_t>(n)) % vector_channels;
    std::uint32_t value = __ldg(work.source + slot.source_of(work, n, channel));
    if constexpr (dtype != DType::uint8) value = lookup(channel * words_per_channel, value);
    reinterpret_cast<Element<dtype>*>(slot.to)[n] = static_cast<Element<dtype>>(value);
  }
}

/// Writes the part of a slot that belongs to the line.
template <DType dtype>
__device__ void store(std::uint8_t* to, std::int32_t begin, std::int32_t line_elements,
                      const uint4& out) {
  constexpr std::int32_t elements = vector_elements<dtype>;
  if (begin >= 0 && begin + elements <= line_elements) {
    *reinterpret_cast<uint4*>(to) = out;
    return;
  }
  const std::uint32_t words[] = {out.x, out.y, out.z, out.w};
#pragma unroll
  for (std::int32_t n = 0; n < elements; ++n) {
    const std::uint32_t at = static_cast<std::uint32_t>(n) * element_bytes<dtype>;
    if (begin + n >= 0 && begin + n < line_elements)
      reinterpret_cast<Element<dtype>*>(to)[n] =
          static_cast<Element<dtype>>(words[at / 4] >> (at % 4 * 8));
  }
}

/// Converts slots: two at a time in each thread, or one if a slot has 16 elements. A thread issues
/// the loads of its second slot before it needs the data of its first. For 16-bit output it has 16
/// bytes in flight that no other thread reads: 20 KiB per multiprocessor.
template <DType dtype, bool planes>
__global__ void __launch_bounds__(row_threads, resident_blocks)
    by_rows(const __grid_constant__ ConversionArguments work) {
  using Slot = RowSlot<dtype, planes>;
  constexpr unsigned elements = vector_elements<dtype>;
  constexpr unsigned slots = elements == 16 ? 1 : 2;
  constexpr unsigned parts = Slot::parts;
  Lookup lookup{};
  if constexpr (dtype != DType::uint8) {
    __shared__ uint4 table[values_per_channel * vector_channels * copies / 4];
    lookup = build_table<dtype>(work, table);
  }
  const auto source_bytes = static_cast<std::int32_t>(work.rows * work.width * vector_channels);
  const std::uint32_t stride = gridDim.x * blockDim.x;
  for (std::uint32_t group = blockIdx.x * blockDim.x + threadIdx.x; group < work.groups;
       group += stride * slots) {
    Slot slot[slots];
    std::uint32_t read[slots][elements];
    bool at_once[slots];
#pragma unroll
    for (unsigned n = 0; n < slots; ++n) {
      at_once[n] = false;
      if (group + n * stride >= work.groups) continue;
      slot[n] = Slot(work, group + n * stride);
      // The pieces also contain bytes beside the slot's own; these must lie in the source too.
      if (planes || !slot[n].flip) {
        at_once[n] = slot[n].from >= static_cast<std::int32_t>(elements) &&
                     slot[n].from <= source_bytes - static_cast<std::int32_t>(elements * parts);
        if (at_once[n]) load_around<elements, parts>(work.source + slot[n].from, read[n]);
        continue;
      }
      at_once[n] = slot[n].source_of(work, elements - 1, 0) >= 0 &&
                   slot[n].source_of(work, 0, vector_channels - 1) < source_bytes;
      if (!at_once[n]) continue;
#pragma unroll
      for (unsigned e = 0; e < elements; ++e)
        read[n][e] =
            __ldg(work.source + slot[n].source_of(work, static_cast<std::int32_t>(e),
                                                  (slot[n].channel + e) % vector_channels));
    }
#pragma unroll
    for (unsigned n = 0; n < slots; ++n) {
      if (group + n * stride >= work.groups) break;
      if (!at_once[n]) {
        convert_singly(work, slot[n], lookup);
        continue;
      }
      if (planes || !slot[n].flip) {
        const auto beside = static_cast<std::uint32_t>(
            reinterpret_cast<std::uintptr_t>(work.source + slot[n].from));
        shift_down<elements, parts>(beside, read[n]);
      } else {
#pragma unroll
        for (unsigned word = 0; word < elements / 4; ++word)
          read[n][word] = read[n][word * 4] | read[n][word * 4 + 1] << 8U |
                          read[n][word * 4 + 2] << 16U | read[n][word * 4 + 3] << 24U;
      }
      const unsigned channel = slot[n].channel;
      const unsigned channels[vector_channels] = {
          channel * words_per_channel,
          (planes ? channel : (channel + 1) % vector_channels) * words_per_channel,
          (planes ? channel : (channel + 2) % vector_channels) * words_per_channel};
      const auto channel_words = [&channels](unsigned e) { return channels[e % vector_channels]; };
      constexpr unsigned step = planes ? vector_channels : 1;
      const auto forward = [](unsigned e) { return e * step; };
      const auto backward = [](unsigned e) { return (elements - 1 - e) * step; };
      const uint4 out = planes && slot[n].flip
                            ? converted<dtype>(read[n], lookup, backward, channel_words)
                            : converted<dtype>(read[n], lookup, forward, channel_words);
      store<dtype>(slot[n].to, slot[n].begin, Slot::line_elements(work), out);
    }
  }
}

}  // namespace millrace::kernels
