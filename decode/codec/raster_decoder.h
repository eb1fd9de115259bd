// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image_decoder.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "codec/pixel_scratch.h"

namespace millrace {

/// Base of the decoders of PNG, PNM and WebP. It checks the order of calls and the limits, reserves
/// memory, and makes lower resolutions as means of pixels. A derived class reads the header and the
/// pixels of a region.
class RasterDecoder : public ImageDecoder {
 public:
  explicit RasterDecoder(std::shared_ptr<DecodeBudget> budget);

  Status open(std::span<const std::byte> encoded) final;
  const ImageHeader& header() const final { return header_; }
  Status decode(const Region& region, PixelView& view) final;
  /// Each pixel is the rounded mean of the pixels that it replaces; at the image's edge these are
  /// fewer. The result equals that of Pillow's `Image.reduce`.
  Status decode_reduced(const Region& region, int reduction, PixelView& view) final;
  Status check() final;
  void close() final;

 protected:
  /// Reads the header and sets all members of `header`. The bytes begin with the signature of the
  /// decoder's format.
  virtual Status read_header(std::span<const std::byte> encoded, ImageHeader& header) = 0;
  /// Returns the bytes of memory that decoding takes in addition to the region's pixels (3 bytes
  /// each). Applies to the image whose header was read last.
  virtual std::uint64_t scratch_bytes(const Region& region) const = 0;
  /// Reads a region and sets `view` to its pixels: in memory from `reserve`, or in the encoded
  /// bytes.
  virtual Status read_region(const Region& region, PixelView& view) = 0;
  /// Reads the image to its end.
  virtual Status read_all() = 0;

  std::span<const std::byte> encoded() const { return encoded_; }
  std::uint8_t* reserve(std::size_t bytes) { return scratch_.reserve(bytes); }
  /// Sets the decoder's name, `ImageHeader::decoder`.
  void set_decoder(const char* name) { header_.decoder = name; }

 private:
  void begin();
  std::uint64_t needed_bytes(const Region& region) const;
  Status decode_reserved(const Region& region, int reduction, PixelView& view);
  void reduce(const PixelView& whole, Size to, int reduction, PixelView& view);

  std::shared_ptr<DecodeBudget> budget_;
  DecodeBudget::Reservation reservation_;
  std::span<const std::byte> encoded_;
  ImageHeader header_;
  bool opened_ = false;
  PixelScratch scratch_;
  PixelScratch reduced_;
};

}  // namespace millrace
