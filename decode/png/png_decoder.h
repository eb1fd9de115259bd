// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codec/raster_decoder.h"
#include "png/libpng.h"
#include "png/png_info.h"

namespace millrace {

/// Decodes PNG by libpng, row by row, down to the region's last row. Interlaced images are decoded
/// pass by pass, each down to its last row in the region. Only the region's pixels are kept. They
/// equal Pillow's `convert("RGB")`: alpha and tRNS are dropped. 16-bit colours keep their higher 8
/// bits; 16-bit grey is clamped to 255. Gamma and profiles are ignored. Colours that a palette
/// lacks are black (Pillow 13; grey before that version). A chunk's wrong checksum makes the image
/// bad if the chunk is read to its end. This holds for the chunks before the one in which the
/// region ends.
class PngDecoder final : public RasterDecoder {
 public:
  using RasterDecoder::RasterDecoder;

 protected:
  Status read_header(std::span<const std::byte> encoded, ImageHeader& header) override;
  std::uint64_t scratch_bytes(const Region& region) const override;
  Status read_region(const Region& region, PixelView& view) override;
  Status read_all() override;

 private:
  bool is_grey_16() const;

  Libpng libpng_;
  PngInfo info_;
};

}  // namespace millrace
