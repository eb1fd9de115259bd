// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>
#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace MILLRACE_API millrace {

/// A rectangle of pixels, from the top left corner.
struct Region {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;

  friend bool operator==(const Region&, const Region&) = default;
};

/// 8-bit RGB pixels in memory that something else owns.
struct PixelView {
  const std::uint8_t* pixels = nullptr;
  int width = 0;
  int height = 0;
  /// Bytes from one row to the next, at least 3 x width.
  std::size_t stride = 0;
};

/// What a JPEG's header says.
struct JpegHeader {
  int width = 0;
  int height = 0;
  /// Components as stored: 1 grey, 3 colour, 4 CMYK.
  int components = 0;
  bool progressive = false;
  bool arithmetic = false;
};

/// Decodes JPEG to 8-bit RGB, of the region that is needed only: rows above it are entropy-decoded
/// alone, rows below it not at all, columns beside it not transformed. Pixels equal libjpeg-turbo's
/// default decode of the whole image (slow integer transform, fancy upsampling), to the bit; CMYK
/// is converted as Pillow does. Data that libjpeg-turbo would patch up with a warning (cut short,
/// bad codes, lost restart markers) is bad here; harmless oddities (bytes between markers, unknown
/// versions) are not. Holds its handle and scratch, which only grows; not for two threads at once.
class JpegDecoder {
 public:
  /// Images of more pixels are bad: a few hostile bytes can claim 65500 x 65500. One of this size
  /// needs up to 1.1 GB while it is decoded.
  static constexpr std::int64_t max_pixels = 100'000'000;
  /// Images of more scans are bad: each scan of a few bytes makes libjpeg walk over the whole
  /// image. Usual encoders write about ten.
  static constexpr int max_scans = 200;

  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;

  /// Reads the header of an encoded image and keeps a view of the bytes for `decode`. Bad for what
  /// is no JPEG or cannot be decoded here; the reason says why. On success `header()` is filled.
  Status open(std::span<const std::byte> encoded);
  const JpegHeader& header() const;

  /// Decodes `region` of the opened image (inside it, not empty; else throws `Error`,
  /// `invalid_argument`) and lets `view` show it in the decoder's scratch, until the next `open`.
  /// Bad when the data is cut short or damaged as far as it was read; `view` is then empty. May be
  /// called once per `open`; again, it throws `Error` (`invalid_argument`).
  Status decode(const Region& region, PixelView& view);

  /// Reads all entropy-coded data of the opened image without keeping pixels: bad where a decode of
  /// the whole would be. May be called once per `open`, instead of `decode`.
  Status check();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
