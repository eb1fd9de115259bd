// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image_decoder.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "codec/pixel_scratch.h"
#include "jpeg/index.h"

namespace millrace {

class Libjpeg;
namespace jpeg {
class BaselineDecoder;
struct Frame;
}  // namespace jpeg

/// What a JPEG's header says.
struct JpegHeader : ImageHeader {
  bool progressive = false;
  bool arithmetic = false;
};

/// Decodes JPEG of the region that is needed only. Our own stages take what datasets mostly hold
/// (`jpeg::read_frame`); libjpeg-turbo takes the rest, and all that the stages find doubtful.
/// Pixels equal libjpeg-turbo's default decode of the whole image (slow integer transform, fancy
/// upsampling), to the bit, whoever makes them; CMYK is converted as Pillow does. Data up to the
/// region's end that libjpeg-turbo would patch up with a warning (cut short, bad codes, lost
/// restart markers, bytes between scans, no end) is bad here, but for what a seek index or
/// restart markers in each row let pass unread. Some stray bytes before the restart marker or EOI
/// that is due are skipped; `ImageHeader::repaired` tells. Harmless oddities (bytes between markers
/// before the first scan, unknown versions) are not. Quantisation tables that a file lacks
/// make it bad; Huffman tables are then the standard ones, as in Motion JPEG.
class JpegDecoder final : public ImageDecoder {
 public:
  explicit JpegDecoder(std::shared_ptr<DecodeBudget> budget = std::make_shared<DecodeBudget>());
  ~JpegDecoder() override;
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;

  Status open(std::span<const std::byte> encoded) override;
  const JpegHeader& header() const override { return header_; }
  Status decode(const Region& region, PixelView& view) override;
  Status decode_reduced(const Region& region, int reduction, PixelView& view) override;
  bool begin_decode(const Region& region) override;
  bool use_index(std::span<const std::byte> index,
                 std::optional<std::uint64_t> checksum = std::nullopt,
                 IndexPoints points = IndexPoints::tiles) override;
  std::span<const std::byte> new_index() override;
  Status check() override;
  void close() override;

 private:
  jpeg::BaselineDecoder* begun() override { return begun_ ? stages_.get() : nullptr; }
  Status check_header(std::size_t encoded_bytes) const;
  void take_image();
  void check_open() const;
  std::uint8_t* reserve(const Region& region);
  std::uint64_t needed_bytes(Region region) const;
  DecodeBudget::Lease take(const Region& region) const;
  Status start(const Region& region, int reduction, unsigned& left, unsigned& top);
  Status crop(const Region& region, unsigned& left);
  Status decode_at(const Region& region, int reduction, PixelView& view);
  bool read_by_stages(const Region& region, int reduction, PixelView& view);
  Status read(const Region& region, int reduction, PixelView& view);
  Status read_all();
  bool check_by_stages(Status& status);
  void doubt();
  void note_repair(const Status& status);

  std::shared_ptr<DecodeBudget> budget_;
  DecodeBudget::Lease lease_;
  std::unique_ptr<Libjpeg> libjpeg_;
  std::unique_ptr<jpeg::Frame> frame_;
  /// Made for the first image that it takes.
  std::unique_ptr<jpeg::BaselineDecoder> stages_;
  bool takes_stages_ = false;
  /// What the stages have begun to decode.
  std::optional<Region> begun_;
  std::span<const std::byte> encoded_;
  /// The seek index, if it is used, how many points were given, and whose it is.
  bool uses_index_ = false;
  jpeg::SeekIndex index_;
  std::size_t given_points_ = 0;
  std::uint64_t checksum_ = 0;
  std::vector<std::byte> packed_;
  JpegHeader header_;
  bool opened_ = false;
  PixelScratch scratch_;
};

}  // namespace millrace
