// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>
#include <millrace/image.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace MILLRACE_API millrace {

/// Interface of a codec that decodes two images interleaved, which takes less time than one image
/// after the other. `ImageDecoder::interleaved` returns it. For one thread.
class InterleavedDecoder {
 public:
  /// Regions of more pixels are not decoded interleaved.
  static constexpr std::int64_t max_pixels = 320'000;

  /// Begins `ImageDecoder::decode` of `region`, so that `decode_interleaved` can do most of the
  /// work interleaved with that of another image. `decode` then does the rest, or all of it for
  /// another region. Returns false if this image or region cannot be interleaved; a region of more
  /// than `max_pixels` never can. Throws as `decode` does. Never waits. `ImageDecoder::use_index`
  /// ends it.
  virtual bool begin_decode(const Region& region) = 0;
  /// Returns whether `decode_interleaved` has work left on this image.
  virtual bool can_interleave() const = 0;
  /// Continues this image and another one that was begun, and alternates between them. So neither
  /// waits for its own table look-ups alone. Returns as soon as one image has no such work left.
  /// That may be at once. Returns false if the codecs differ, so that each must be decoded alone.
  virtual bool decode_interleaved(InterleavedDecoder& other) = 0;

 protected:
  InterleavedDecoder() = default;
  ~InterleavedDecoder() = default;
  InterleavedDecoder(const InterleavedDecoder&) = default;
  InterleavedDecoder& operator=(const InterleavedDecoder&) = default;
};

/// Returns whether the codec of such an image offers interleaved decoding. The first 16 bytes are
/// enough.
bool offers_interleaving(std::span<const std::byte> encoded);

}  // namespace millrace
