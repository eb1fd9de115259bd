// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/interleaved_decoder.h>
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
class ProgressiveDecoder;
struct Frame;
struct Script;
}  // namespace jpeg

/// The properties that a JPEG's header states.
struct JpegHeader : ImageHeader {
  bool progressive = false;
  bool arithmetic = false;
};

/// Decodes a region of a JPEG. Our own stages decode the kinds that are common in datasets
/// (`jpeg::read_frame`, `jpeg::read_script`). libjpeg-turbo decodes the others, and every image in
/// which the stages find data that may be corrupt. The pixels of both equal libjpeg-turbo's default
/// decode of the whole image (slow integer transform, fancy upsampling) to the bit. CMYK is
/// converted as in Pillow.
///
/// Data that libjpeg-turbo would repair with a warning makes an image bad, up to the region's end:
/// truncated data, bad codes, lost restart markers, bytes between scans, a missing end. Data that
/// the decoder skips by a seek index, or by restart markers in each row, is not checked. In a
/// progressive image the markers of all scans are checked, and the other data of each scan up to
/// the region's end. Some stray bytes before the expected restart marker or EOI are skipped;
/// `ImageHeader::repaired` says so. Harmless oddities do not make an image bad: bytes between
/// markers before the first scan, unknown versions. A file without a quantisation table that it
/// needs is bad. A file without Huffman tables is decoded with the standard ones, as in Motion
/// JPEG.
class JpegDecoder final : public ImageDecoder, public InterleavedDecoder {
 public:
  explicit JpegDecoder(std::shared_ptr<DecodeBudget> budget = std::make_shared<DecodeBudget>());
  ~JpegDecoder() override;
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;

  Status open(std::span<const std::byte> encoded) override;
  const JpegHeader& header() const override { return header_; }
  Status decode(const Region& region, PixelView& view) override;
  Status decode_reduced(const Region& region, int reduction, PixelView& view) override;
  /// Supports baseline JPEGs that our own stages decode, unless their index or restart markers tell
  /// where all rows begin.
  InterleavedDecoder* interleaved() override { return this; }
  bool begin_decode(const Region& region) override;
  bool can_interleave() const override;
  bool decode_interleaved(InterleavedDecoder& other) override;
  bool use_index(std::span<const std::byte> index,
                 std::optional<std::uint64_t> checksum = std::nullopt,
                 IndexPoints points = IndexPoints::tiles) override;
  std::span<const std::byte> extended_index() override;
  Status check() override;
  void close() override;

  /// Returns the frame of the opened image; null unless the baseline stages decode it. Valid until
  /// the next `open`, as is the index.
  const jpeg::Frame* baseline() const { return opened_ && takes_stages_ ? frame_.get() : nullptr; }
  /// Returns the index in use, or one without points.
  const jpeg::SeekIndex& index() const { return index_; }

 private:
  const char* choose_decoder();
  Status check_header(std::size_t encoded_bytes) const;
  void take_image();
  void check_open() const;
  std::uint8_t* reserve(const Region& region);
  std::uint64_t needed_bytes(Region region) const;
  std::uint64_t needed_by_progressive(const Region& region) const;
  DecodeBudget::Reservation take(const Region& region) const;
  Status start(const Region& region, int reduction, unsigned& left, unsigned& top);
  Status crop(const Region& region, unsigned& left);
  Status decode_at(const Region& region, int reduction, PixelView& view);
  bool read_by_stages(const Region& region, int reduction, PixelView& view);
  Status read(const Region& region, int reduction, PixelView& view);
  Status read_all();
  bool check_by_stages(Status& status);
  void take_whole_index(jpeg::SeekIndex whole, Status& status);
  void check_scans(Status& status);
  void free_large_coefficients();
  void doubt();
  void note_repair(const Status& status);

  std::shared_ptr<DecodeBudget> budget_;
  DecodeBudget::Reservation reservation_;
  std::unique_ptr<Libjpeg> libjpeg_;
  std::unique_ptr<jpeg::Frame> frame_;
  std::unique_ptr<jpeg::Script> script_;
  /// Made for the first image that the stages decode.
  std::unique_ptr<jpeg::BaselineDecoder> stages_;
  std::unique_ptr<jpeg::ProgressiveDecoder> progressive_;
  /// Whether the stages decode the image, as baseline or as progressive.
  bool takes_stages_ = false;
  bool takes_progressive_ = false;
  /// The region that the stages have begun to decode.
  std::optional<Region> begun_;
  std::span<const std::byte> encoded_;
  /// Whether a seek index is used; the index, the number of points that it had when given, and the
  /// checksum of its image.
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
