// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image_decoder.h>

#include <memory>

namespace millrace {

class Libjpeg;

/// What a JPEG's header says.
struct JpegHeader : ImageHeader {
  bool progressive = false;
  bool arithmetic = false;
};

/// Decodes JPEG of the region that is needed only: rows above it are entropy-decoded alone, rows
/// below it not at all, columns beside it not transformed. Pixels equal libjpeg-turbo's default
/// decode of the whole image (slow integer transform, fancy upsampling), to the bit; CMYK is
/// converted as Pillow does. Data that libjpeg-turbo would patch up with a warning (cut short, bad
/// codes, lost restart markers, bytes left after a scan, no end) is bad here; harmless oddities
/// (bytes between markers before the first scan, unknown versions) are not. Quantisation tables
/// that a file lacks make it bad; Huffman tables are then the standard ones, as in Motion JPEG.
class JpegDecoder final : public ImageDecoder {
 public:
  explicit JpegDecoder(std::shared_ptr<DecodeBudget> budget = std::make_shared<DecodeBudget>());
  ~JpegDecoder() override;
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;

  Status open(std::span<const std::byte> encoded) override;
  const JpegHeader& header() const override { return header_; }
  Status decode(const Region& region, PixelView& view) override;
  Status check() override;
  void close() override;

 private:
  Status check_limits(std::size_t encoded_bytes) const;
  void begin();
  std::uint64_t needed_bytes(Region region) const;
  DecodeBudget::Lease take(const Region& region) const;
  Status start(const Region& region, unsigned& left, unsigned& top);
  Status crop(const Region& region, unsigned& left);
  Status read(const Region& region, PixelView& view);
  Status read_all();
  std::uint8_t* reserve(std::size_t bytes);
  void drop_scratch();

  std::shared_ptr<DecodeBudget> budget_;
  DecodeBudget::Lease lease_;
  std::unique_ptr<Libjpeg> libjpeg_;
  JpegHeader header_;
  bool opened_ = false;
  std::unique_ptr<std::uint8_t[]> scratch_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace millrace
