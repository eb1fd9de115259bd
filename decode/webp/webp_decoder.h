// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codec/raster_decoder.h"
#include "webp/webp_info.h"

namespace millrace {

/// Decodes WebP by libwebp, of animations the first frame on a canvas that is black beside it.
/// Pixels equal those of a whole decode, and Pillow's `convert("RGB")` with the same libwebp: alpha
/// is left out. Lossy images are decoded as far as the region reaches, and only in it; lossless
/// ones as wholes.
class WebpDecoder final : public RasterDecoder {
 public:
  using RasterDecoder::RasterDecoder;

 protected:
  Status read_header(std::span<const std::byte> encoded, ImageHeader& header) override;
  std::uint64_t bytes_beside(const Region& region) const override;
  Status read_region(const Region& region, PixelView& view) override;
  Status read_all() override;

 private:
  /// Decodes a part of the frame, which `decoded_part` gave.
  Status read_part(const Region& part, std::uint8_t* pixels) const;

  WebpInfo info_;
};

}  // namespace millrace
