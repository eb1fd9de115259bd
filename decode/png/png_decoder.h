// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codec/raster_decoder.h"
#include "png/libpng.h"
#include "png/png_info.h"

namespace millrace {

/// Decodes PNG by libpng, row by row, as far as the region reaches; of interlaced images the passes
/// as far as their last row in the region. Only the region's pixels are kept. They equal Pillow's
/// `convert("RGB")`: alpha and tRNS are left out, of 16 bits the higher 8 are taken, but grey of 16
/// bits is cut at 255; gamma and profiles are not looked at. Colours that a palette does not have
/// are black (Pillow 13; before it they were grey). Checksums that do not match are bad, of
/// all chunks that are read to their end: those before the one in which the region ends.
class PngDecoder final : public RasterDecoder {
 public:
  using RasterDecoder::RasterDecoder;

 protected:
  Status read_header(std::span<const std::byte> encoded, ImageHeader& header) override;
  std::uint64_t bytes_beside(const Region& region) const override;
  Status read_region(const Region& region, PixelView& view) override;
  Status read_all() override;

 private:
  bool is_grey_16() const;

  Libpng libpng_;
  PngInfo info_;
};

}  // namespace millrace
