// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace millrace {

/// A rectangle of pixels, from the top left corner.
struct Region {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;

  friend bool operator==(const Region&, const Region&) = default;
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

/// Decodes JPEG to 8-bit RGB, of the region that is needed only: rows above it are entropy-decoded alone, rows below it not at all,
/// columns beside it not transformed. Pixels equal libjpeg-turbo's default decode of the whole image (slow integer transform, fancy
/// upsampling), to the bit; CMYK is converted as Pillow does. Holds its handle and scratch; not for two threads at once.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;

  /// Reads the header of an encoded image and keeps a view of the bytes for `decode`. Bad for what is no JPEG or cannot be decoded
  /// here; the reason says why. On success `header()` is filled.
  Status open(std::span<const std::byte> encoded);
  const JpegHeader& header() const;

  /// Decodes `region` of the opened image (inside it, not empty; else throws `Error`, `invalid_argument`) into `pixels`: RGB, rows
  /// `stride` bytes apart (at least 3 x region.width). Bad when the data is cut short or damaged as far as it was read; `pixels`
  /// then holds nothing of use. May be called once per `open`.
  Status decode(const Region& region, std::uint8_t* pixels, std::size_t stride);

  /// Reads all entropy-coded data of the opened image without keeping pixels: bad where a decode of the whole would be.
  /// May be called once per `open`, instead of `decode`.
  Status check();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
