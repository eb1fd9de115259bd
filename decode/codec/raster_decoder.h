// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image_decoder.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "codec/pixel_scratch.h"

namespace millrace {

/// Base of the codecs whose files hold pixels directly. It has the order of the calls, the limits,
/// the budget, the scratch, and lower resolutions, which are means of pixels. A codec reads its
/// header and a region.
class RasterDecoder : public ImageDecoder {
 public:
  explicit RasterDecoder(std::shared_ptr<DecodeBudget> budget);

  Status open(std::span<const std::byte> encoded) final;
  const ImageHeader& header() const final { return header_; }
  Status decode(const Region& region, PixelView& view) final;
  /// Each pixel is the rounded mean of the pixels that it replaces, as far as the image has them.
  /// That is Pillow's `Image.reduce`.
  Status decode_reduced(const Region& region, int reduction, PixelView& view) final;
  Status check() final;
  void close() final;

 protected:
  /// Reads the header of bytes that begin as those of the codec's kind do. Sets all members of
  /// `header`.
  virtual Status read_header(std::span<const std::byte> encoded, ImageHeader& header) = 0;
  /// Returns the memory that decoding takes besides the region's pixels (3 bytes each), for the
  /// image whose header was read last.
  virtual std::uint64_t bytes_beside(const Region& region) const = 0;
  /// Sets `view` to the region, in memory of `reserve` or in the encoded bytes.
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
