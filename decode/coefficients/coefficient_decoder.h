// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image_decoder.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "codec/pixel_scratch.h"
#include "coefficients/record.h"
#include "jpeg/coefficients.h"
#include "jpeg/decoder/region_pixels.h"
#include "jpeg/frame.h"

namespace millrace {

/// Decodes a region of a record of the form `coefficients`. It expands the tiles that the region
/// needs, and makes the pixels that `JpegDecoder` makes of the original file.
class CoefficientDecoder final : public ImageDecoder {
 public:
  explicit CoefficientDecoder(std::shared_ptr<DecodeBudget> budget);

  Status open(std::span<const std::byte> encoded) override;
  const ImageHeader& header() const override { return header_; }
  Status decode(const Region& region, PixelView& view) override;
  Status decode_rows(const Region& region, RowSink& sink) override;
  Status decode_reduced(const Region& region, int reduction, PixelView& view) override;
  /// Compares the record's checksum, and expands all blocks.
  Status check() override;
  void close() override;

 private:
  void take_image();
  Status decode_at(const Region& region, int reduction, PixelView& view);
  std::uint8_t* begin(const Region& region, int reduction, int rows);
  template <typename Made>
  Status make_rows(int reduction, const Made& made);
  bool expand(const jpeg::McuWindow& window, int mcu_row);
  void set_steps();
  bool make_samples(const jpeg::McuWindow& window, int mcu_row);
  void prefetch(const jpeg::McuWindow& window, int mcu_row) const;

  std::shared_ptr<DecodeBudget> budget_;
  DecodeBudget::Reservation reservation_;
  coefficients::RecordReader reader_;
  jpeg::Frame frame_;
  jpeg::CoefficientRow row_;
  /// Quantisation steps for the path that makes samples directly from tiles.
  std::array<coefficients::StepsOfBytes, 3> steps_;
  jpeg::RegionPixels pixels_;
  ImageHeader header_;
  bool opened_ = false;
  PixelScratch scratch_;
};

/// Reads the image's properties from the segments before the original file's first scan.
Status read_coefficient_info(std::span<const std::byte> encoded, ImageInfo& info);

}  // namespace millrace
