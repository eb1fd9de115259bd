// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codec/raster_decoder.h"

namespace millrace {

/// Reads the pixels of binary PGM and PPM files (P5 and P6 of netpbm's pgm(5) and ppm(5)) with a
/// maximal value of 255. Comments may occur anywhere before the pixels and end with their line. Of
/// a file with several images the first one is read. Netpbm's other formats give a bad status that
/// names the format. The view of a P6 points into the encoded bytes.
class PnmDecoder final : public RasterDecoder {
 public:
  using RasterDecoder::RasterDecoder;

 protected:
  Status read_header(std::span<const std::byte> encoded, ImageHeader& header) override;
  std::uint64_t scratch_bytes(const Region& region) const override;
  Status read_region(const Region& region, PixelView& view) override;
  Status read_all() override;

 private:
  /// Returns a bad status unless the file has `rows` rows.
  Status has_rows(int rows) const;

  std::size_t pixels_at_ = 0;
};

/// Reads the header. Returns a bad status, with the reason, for a file that `PnmDecoder` does not
/// open.
Status read_pnm_info(std::span<const std::byte> encoded, ImageInfo& info);

}  // namespace millrace
