// SPDX-License-Identifier: Apache-2.0
//
// The kernel that erases and mixes, and its launch. Included only by kernels.cu. Tests compare it
// with `MixWork::run_on_host`.
//
// It changes images in place, before the conversion reads them, so the conversion's kernels are
// unaffected. A thread processes bytes of image `one` and, in its partner image `two`, the bytes
// that are mixed with them. These bytes depend only on each other, so a thread never reads bytes
// that another thread writes.
//
// A thread processes four bytes at a time: a word of image `one`. The next threads process the next
// words, so a warp reads and writes 128 adjacent bytes. The partner's four bytes are a word too if
// both images have the same alignment. Otherwise they are read and written in the pieces that their
// alignment allows. A thread loads two words before it uses the first. Unchanged words are neither
// read nor written.
#pragma once

#include <cuda_runtime_api.h>
#include <millrace/detail/mix_arithmetic.h>
#include <millrace/mix_work.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pixel/divisor.h"
#include "pixel/enqueue.h"

namespace millrace::kernels {

inline constexpr unsigned mix_threads = 256;
/// Number of resident blocks for which the compiler limits the registers. A multiprocessor of T4
/// (sm_75) has 1024 threads.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr unsigned mix_blocks = 4;
#else
inline constexpr unsigned mix_blocks = 5;
#endif
/// Number of words that a thread loads before it uses the first, and number of repetitions.
inline constexpr unsigned mix_words = 2;
inline constexpr unsigned mix_rounds = 4;
inline constexpr unsigned word_bytes = 4;
/// Bytes of an image that one block processes.
inline constexpr unsigned mix_chunk = mix_threads * mix_words * mix_rounds * word_bytes;

struct MixArguments {
  std::uint8_t* images = nullptr;
  const std::uint8_t* flips = nullptr;
  const std::int32_t* erases = nullptr;
  const std::int32_t* mixes = nullptr;
  std::uint32_t samples = 0;
  std::int32_t width = 0;
  std::int32_t channels = 0;
  std::int32_t row_bytes = 0;
  std::int32_t image_bytes = 0;
  std::uint32_t chunks_per_pair = 0;
  Divisor by_pair;
  Divisor by_row;
  Divisor by_channels;
};

/// A box of an image as it is stored: a range of bytes in each row, and a range of rows.
struct ByteBox {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::int32_t top = 0;
  std::int32_t bottom = 0;

  ByteBox() = default;
  __device__ ByteBox(const MixArguments& work, const std::int32_t* box, bool mirrored) {
    const std::int32_t x = mirrored ? work.width - __ldg(box) - __ldg(box + 2) : __ldg(box);
    begin = x * work.channels;
    end = (x + __ldg(box + 2)) * work.channels;
    top = __ldg(box + 1);
    bottom = top + __ldg(box + 3);
  }
  __device__ bool any() const { return begin < end && top < bottom; }
  /// Returns the smallest box that contains both.
  __device__ ByteBox joined(const ByteBox& box) const {
    if (!any()) return box;
    if (!box.any()) return *this;
    ByteBox both;
    both.begin = begin < box.begin ? begin : box.begin;
    both.end = end > box.end ? end : box.end;
    both.top = top < box.top ? top : box.top;
    both.bottom = bottom > box.bottom ? bottom : box.bottom;
    return both;
  }
  /// Mask of the bytes x .. x + 3 of row y: 0xFF for each byte that lies in the box.
  __device__ std::uint32_t mask(std::int32_t x, std::int32_t y) const {
    if (y < top || y >= bottom) return 0;
    return bytes_below(end - x) & ~bytes_below(begin - x);
  }

 private:
  /// Mask of the first `count` of four bytes.
  __device__ static std::uint32_t bytes_below(std::int32_t count) {
    return count <= 0 ? 0U : count >= 4 ? ~0U : (1U << (count * 8)) - 1U;
  }
};

/// Mixes four bytes, each as `mixed` does. Two bytes at a time are processed in the halves of a
/// word.
__device__ inline std::uint32_t mixed_word(std::uint32_t own, std::uint32_t other,
                                           std::uint32_t weight) {
  constexpr std::uint32_t every_second = 0x00FF00FFU;
  constexpr std::uint32_t round = 0x00800080U;
  const std::uint32_t rest = 256U - weight;
  const std::uint32_t low = (own & every_second) * weight + (other & every_second) * rest + round;
  const std::uint32_t high =
      (own >> 8U & every_second) * weight + (other >> 8U & every_second) * rest + round;
  return (low >> 8U & every_second) | (high & ~every_second);
}

/// One image of a pair. Its boxes are in byte coordinates of image `one`.
struct MixImage {
  std::uint8_t* at = nullptr;
  const std::int32_t* erase = nullptr;
  std::uint32_t weight = 256;
  ByteBox erased;
  ByteBox other;

  __device__ MixImage(const MixArguments& work, std::size_t sample, bool mirrored, bool mixes) {
    at = work.images + sample * static_cast<std::size_t>(work.image_bytes);
    if (work.erases != nullptr) {
      erase = work.erases + sample * MixWork::erase_numbers;
      erased = ByteBox(work, erase, mirrored);
    }
    if (work.mixes == nullptr || !mixes) return;
    const std::int32_t* const mix = work.mixes + sample * MixWork::mix_numbers;
    weight = static_cast<std::uint32_t>(__ldg(mix));
    other = ByteBox(work, mix + 1, mirrored);
  }
};

/// Alignment of a partner's four bytes in memory.
enum class Partner {
  word,      // a word
  halves,    // two halves of adjacent words
  bytes,     // at an odd address: one byte, two bytes and one byte
  mirrored,  // pixels in reverse order, byte by byte
};
template <Partner partner>
inline constexpr unsigned partner_pieces = partner == Partner::word       ? 1
                                           : partner == Partner::halves   ? 2
                                           : partner == Partner::mirrored ? 4
                                                                          : 3;

template <typename Piece>
__device__ Piece& piece_at(std::uint8_t* at) {
  return *reinterpret_cast<Piece*>(at);
}

/// The pair of images of a block. Byte numbers refer to image `one`.
struct MixPair {
  const MixArguments& work;
  MixImage one;
  MixImage two;
  /// The smallest box that contains all boxes of both images.
  ByteBox all = one.erased.joined(two.erased).joined(one.other.joined(two.other));

  struct RowPosition {
    std::int32_t x = 0;
    std::int32_t y = 0;
  };
  __device__ RowPosition position_of(std::int32_t byte) const {
    const auto y =
        static_cast<std::int32_t>(work.by_row.quotient(static_cast<std::uint32_t>(byte)));
    return {byte - y * work.row_bytes, y};
  }
  __device__ std::int32_t channel_of(std::int32_t byte) const {
    const std::uint32_t pixel = work.by_channels.quotient(static_cast<std::uint32_t>(byte));
    return byte - static_cast<std::int32_t>(pixel) * work.channels;
  }
  /// For each box, a mask of four adjacent bytes: 0xFF for each byte in the box.
  struct Masks {
    std::uint32_t erased_one = 0;
    std::uint32_t erased_two = 0;
    std::uint32_t in_one = 0;
    std::uint32_t in_two = 0;
  };
  __device__ Masks masks_of(std::int32_t byte) const {
    Masks masks;
    if (!all.any()) return masks;
    RowPosition position = position_of(byte);
    // The bytes may continue in further rows.
#pragma unroll 1
    for (bool more = true; more; position.x -= work.row_bytes, ++position.y) {
      masks.erased_one |= one.erased.mask(position.x, position.y);
      masks.erased_two |= two.erased.mask(position.x, position.y);
      masks.in_one |= one.other.mask(position.x, position.y);
      masks.in_two |= two.other.mask(position.x, position.y);
      more = position.x + static_cast<std::int32_t>(word_bytes) > work.row_bytes;
    }
    return masks;
  }
  /// Returns whether one of the four bytes from `byte` on may change.
  __device__ bool may_change(std::int32_t byte) const {
    if (one.weight != 256 || two.weight != 256) return true;
    const RowPosition position = position_of(byte);
    const std::int32_t end = position.x + static_cast<std::int32_t>(word_bytes);
    return end > work.row_bytes || (position.y >= all.top && position.y < all.bottom &&
                                    end > all.begin && position.x < all.end);
  }

  /// Address of the partner of a byte in image `two` if that image is mirrored.
  __device__ std::uint8_t* mirrored(std::int32_t byte) const {
    const std::int32_t x = position_of(byte).x;
    return two.at + (byte - x + work.row_bytes - work.channels - x + 2 * channel_of(byte));
  }
  template <Partner partner>
  __device__ void load(std::int32_t byte, std::uint32_t* pieces) const {
    std::uint8_t* const at = two.at + byte;
    if constexpr (partner == Partner::word) {
      pieces[0] = piece_at<std::uint32_t>(at);
    } else if constexpr (partner == Partner::halves) {
      pieces[0] = piece_at<std::uint16_t>(at);
      pieces[1] = piece_at<std::uint16_t>(at + 2);
    } else if constexpr (partner == Partner::bytes) {
      pieces[0] = at[0];
      pieces[1] = piece_at<std::uint16_t>(at + 1);
      pieces[2] = at[3];
    } else {
#pragma unroll
      for (int n = 0; n < 4; ++n) pieces[n] = *mirrored(byte + n);
    }
  }
  template <Partner partner>
  __device__ static std::uint32_t joined(const std::uint32_t* pieces) {
    if constexpr (partner == Partner::word) return pieces[0];
    if constexpr (partner == Partner::halves) return pieces[0] | pieces[1] << 16U;
    if constexpr (partner == Partner::bytes) return pieces[0] | pieces[1] << 8U | pieces[2] << 24U;
    return pieces[0] | pieces[1] << 8U | pieces[2] << 16U | pieces[3] << 24U;
  }
  template <Partner partner>
  __device__ void store(std::int32_t byte, std::uint32_t word) const {
    std::uint8_t* const at = two.at + byte;
    if constexpr (partner == Partner::word) {
      piece_at<std::uint32_t>(at) = word;
    } else if constexpr (partner == Partner::halves) {
      piece_at<std::uint16_t>(at) = static_cast<std::uint16_t>(word);
      piece_at<std::uint16_t>(at + 2) = static_cast<std::uint16_t>(word >> 16U);
    } else if constexpr (partner == Partner::bytes) {
      at[0] = static_cast<std::uint8_t>(word);
      piece_at<std::uint16_t>(at + 1) = static_cast<std::uint16_t>(word >> 8U);
      at[3] = static_cast<std::uint8_t>(word >> 24U);
    } else {
#pragma unroll
      for (int n = 0; n < 4; ++n) *mirrored(byte + n) = static_cast<std::uint8_t>(word >> (n * 8));
    }
  }

  /// Four bytes of an image after the mix, and whether they changed.
  struct Result {
    std::uint32_t word = 0;
    bool changed = false;
  };
  __device__ void mix(std::int32_t byte, std::uint32_t own, std::uint32_t other, Result& of_one,
                      Result& of_two) const {
    const Masks in = masks_of(byte);
    if (in.erased_one != 0) own = (own & ~in.erased_one) | (filling(one, byte) & in.erased_one);
    if (in.erased_two != 0) other = (other & ~in.erased_two) | (filling(two, byte) & in.erased_two);
    of_one = {(mixed_word(own, other, one.weight) & ~in.in_one) | (other & in.in_one),
              one.weight != 256 || (in.erased_one | in.in_one) != 0};
    of_two = {(mixed_word(other, own, two.weight) & ~in.in_two) | (own & in.in_two),
              two.weight != 256 || (in.erased_two | in.in_two) != 0};
  }
  __device__ std::uint32_t filling(const MixImage& image, std::int32_t byte) const {
    std::uint32_t word = 0;
#pragma unroll 1
    for (int n = 0; n < 4; ++n)
      word |= (static_cast<std::uint32_t>(__ldg(image.erase + 4 + channel_of(byte + n))) & 0xFFU)
              << (n * 8);
    return word;
  }

  /// Mixes a thread's words of a chunk. The first word is at `begin`.
  template <Partner partner>
  __device__ void mix_chunk_at(std::int32_t begin, std::int32_t end) const {
#pragma unroll 1
    for (unsigned round = 0; round < mix_rounds && begin < end; ++round) {
      mix_words_at<partner>(begin, end);
      begin += static_cast<std::int32_t>(mix_threads * word_bytes * mix_words);
    }
  }
  template <Partner partner>
  __device__ void mix_words_at(std::int32_t begin, std::int32_t end) const {
    constexpr auto step = static_cast<std::int32_t>(mix_threads * word_bytes);
    std::uint32_t own[mix_words]{};
    std::uint32_t other[mix_words][partner_pieces<partner>]{};
    bool wanted[mix_words];
#pragma unroll
    for (int n = 0; n < static_cast<int>(mix_words); ++n) {
      const std::int32_t byte = begin + n * step;
      wanted[n] = byte < end && may_change(byte);
      if (!wanted[n]) continue;
      own[n] = piece_at<std::uint32_t>(one.at + byte);
      load<partner>(byte, other[n]);
    }
#pragma unroll
    for (int n = 0; n < static_cast<int>(mix_words); ++n) {
      if (!wanted[n]) continue;
      const std::int32_t byte = begin + n * step;
      Result of_one;
      Result of_two;
      mix(byte, own[n], joined<partner>(other[n]), of_one, of_two);
      if (of_one.changed) piece_at<std::uint32_t>(one.at + byte) = of_one.word;
      if (of_two.changed && two.at != one.at) store<partner>(byte, of_two.word);
    }
  }
  __device__ void mix_byte(std::int32_t byte, bool flip) const {
    std::uint8_t* const partner = flip ? mirrored(byte) : two.at + byte;
    Result of_one;
    Result of_two;
    mix(byte, one.at[byte], *partner, of_one, of_two);
    if (of_one.changed) one.at[byte] = static_cast<std::uint8_t>(of_one.word);
    if (of_two.changed && two.at != one.at) *partner = static_cast<std::uint8_t>(of_two.word);
  }
};

__global__ void __launch_bounds__(mix_threads, mix_blocks)
    erase_and_mix(const __grid_constant__ MixArguments work) {
  const std::uint32_t chunk = blockIdx.x;
  const std::uint32_t first = work.by_pair.quotient(chunk);
  const std::uint32_t second = work.samples - 1 - first;
  const bool flip_one = work.flips != nullptr && __ldg(work.flips + first) != 0;
  const bool flip_two = work.flips != nullptr && __ldg(work.flips + second) != 0;
  const bool flip = flip_one != flip_two;
  // An image in the middle of the batch is its own partner. It is only erased.
  const bool mixes = first != second;
  const MixPair pair{work, MixImage(work, first, flip_one, mixes),
                     MixImage(work, second, flip_one, mixes)};
  // The bytes before the first whole word, and the end of the last whole word.
  const auto before =
      static_cast<std::int32_t>(-reinterpret_cast<std::uintptr_t>(pair.one.at) % word_bytes);
  const std::int32_t head = before < work.image_bytes ? before : work.image_bytes;
  const std::int32_t end =
      work.image_bytes - (work.image_bytes - head) % static_cast<std::int32_t>(word_bytes);
  const std::uint32_t piece = chunk - first * work.chunks_per_pair;
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  if (piece == 0 && thread < head + work.image_bytes - end)
    pair.mix_byte(thread < head ? thread : end + thread - head, flip);
  const std::int32_t first_word = head + static_cast<std::int32_t>(piece * mix_chunk) +
                                  thread * static_cast<std::int32_t>(word_bytes);
  const auto beside = reinterpret_cast<std::uintptr_t>(pair.two.at + head) % word_bytes;
  if (flip)
    pair.mix_chunk_at<Partner::mirrored>(first_word, end);
  else if (beside == 0)
    pair.mix_chunk_at<Partner::word>(first_word, end);
  else if (beside == 2)
    pair.mix_chunk_at<Partner::halves>(first_word, end);
  else
    pair.mix_chunk_at<Partner::bytes>(first_word, end);
}

inline cudaError_t load_mix() { return load_kernel(erase_and_mix); }

inline cudaError_t launch_mix(const MixWork& work, cudaStream_t stream) {
  if (work.channels == 0 || work.channels > Conversion::max_channels) return cudaErrorInvalidValue;
  if (work.samples == 0 || work.height == 0 || work.width == 0) return cudaSuccess;
  if (work.erases == nullptr && work.mixes == nullptr) return cudaSuccess;
  // The positions that threads compute beyond the end must also stay below 2^31.
  constexpr std::size_t max_bytes = (std::size_t{1} << 31U) - 2 * mix_chunk;
  constexpr std::size_t max_chunks = (std::size_t{1} << 31U) - 1;  // limit of a grid's blocks
  const std::size_t row_bytes = work.width * work.channels;
  if (row_bytes > max_bytes / work.height) return cudaErrorInvalidValue;
  MixArguments arguments;
  arguments.images = work.images;
  arguments.flips = work.flips;
  arguments.erases = work.erases;
  arguments.mixes = work.mixes;
  arguments.samples = static_cast<std::uint32_t>(work.samples);
  arguments.width = static_cast<std::int32_t>(work.width);
  arguments.channels = static_cast<std::int32_t>(work.channels);
  arguments.row_bytes = static_cast<std::int32_t>(row_bytes);
  arguments.image_bytes = static_cast<std::int32_t>(row_bytes * work.height);
  const std::size_t chunks_per_pair = (row_bytes * work.height + mix_chunk - 1) / mix_chunk;
  const std::size_t chunks = (work.samples + 1) / 2 * chunks_per_pair;
  if (chunks > max_chunks) return cudaErrorInvalidValue;
  arguments.chunks_per_pair = static_cast<std::uint32_t>(chunks_per_pair);
  arguments.by_pair = Divisor(arguments.chunks_per_pair);
  arguments.by_row = Divisor(static_cast<std::uint32_t>(row_bytes));
  arguments.by_channels = Divisor(static_cast<std::uint32_t>(work.channels));
  return enqueue(erase_and_mix, chunks, mix_threads, arguments, stream);
}

}  // namespace millrace::kernels
