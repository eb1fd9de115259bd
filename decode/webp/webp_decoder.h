// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codec/raster_decoder.h"
#include "webp/webp_info.h"

namespace millrace {

/// Decodes WebP by libwebp. Of an animation it decodes the first frame, on a black canvas. Pixels
/// equal those of a whole decode, and those of Pillow's `convert("RGB")` with the same libwebp:
/// alpha is dropped. Lossy images are decoded only inside the region and only down to its end.
/// Lossless ones are decoded as a whole.
class WebpDecoder final : public RasterDecoder {
 public:
  using RasterDecoder::RasterDecoder;

 protected:
  Status read_header(std::span<const std::byte> encoded, ImageHeader& header) override;
  std::uint64_t scratch_bytes(const Region& region) const override;
  Status read_region(const Region& region, PixelView& view) override;
  Status read_all() override;

 private:
  /// Decodes a part of the frame. The part must come from `decoded_part`.
  Status read_part(const Region& part, std::uint8_t* pixels) const;

  WebpInfo info_;
};

}  // namespace millrace
