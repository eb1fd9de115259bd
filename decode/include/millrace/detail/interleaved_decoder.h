// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>
#include <millrace/image.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace MILLRACE_API millrace {

/// Interface of a codec that decodes two images interleaved, which takes less time than one image
/// after the other. `ImageDecoder::interleaved` returns it. Belongs to one thread at a time, as the
/// decoder does.
class InterleavedDecoder {
 public:
  /// Regions of more pixels are not decoded interleaved.
  static constexpr std::int64_t max_pixels = 320'000;

  /// Begins the decode of `region`. `decode_interleaved` can then do most of the work, interleaved
  /// with the decode of another image. A later `ImageDecoder::decode` of the same region does the
  /// rest. A `decode` of another region starts from the beginning. Returns false if this image or
  /// region cannot be interleaved; a region of more than `max_pixels` never can. Throws as `decode`
  /// does. Never waits. `ImageDecoder::use_index` discards the begun decode.
  virtual bool begin_decode(const Region& region) = 0;
  /// Returns whether `decode_interleaved` has work left on this image.
  virtual bool can_interleave() const = 0;
  /// Continues the begun decodes of this image and of `other`, symbol by symbol in alternation. So
  /// one image proceeds while the other waits for a table look-up. Returns as soon as one image has
  /// no such work left, possibly at once. Returns false if the codecs of the two images differ;
  /// each image must then be decoded alone.
  virtual bool decode_interleaved(InterleavedDecoder& other) = 0;

 protected:
  InterleavedDecoder() = default;
  ~InterleavedDecoder() = default;
  InterleavedDecoder(const InterleavedDecoder&) = default;
  InterleavedDecoder& operator=(const InterleavedDecoder&) = default;
};

/// Returns whether the codec of this image offers interleaved decoding. The image's first 16 bytes
/// are enough.
bool offers_interleaving(std::span<const std::byte> encoded);

}  // namespace millrace
