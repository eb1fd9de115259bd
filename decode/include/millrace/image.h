// SPDX-License-Identifier: Apache-2.0
//
// Values that describe images. They may be copied and used on any thread. The pixels of a
// `PixelView` must outlive it.
#pragma once

#include <millrace/detail/export.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace MILLRACE_API millrace {

/// The image formats that are recognised, whether they can be decoded or not. `pnm` is Netpbm's
/// family, P1 to P7. `coefficients` is millrace's record form of a JPEG.
enum class ImageKind {
  unknown,
  jpeg,
  png,
  webp,
  gif,
  bmp,
  tiff,
  avif,
  heic,
  jpeg_xl,
  jpeg_2000,
  pnm,
  coefficients
};

/// Returns the format's usual name, such as "JPEG", "JPEG 2000" or "PNM", or "unknown".
const char* to_string(ImageKind kind);

/// Determines the kind of an encoded image from its first bytes. 16 bytes are enough.
ImageKind image_kind(std::span<const std::byte> encoded);

/// Width and height in pixels.
struct Size {
  int width = 0;
  int height = 0;
  friend bool operator==(const Size&, const Size&) = default;
};

/// A rectangle of pixels. x and y count from the image's top left corner.
struct Region {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;

  friend bool operator==(const Region&, const Region&) = default;
};

/// A view of 8-bit RGB pixels. It does not own them.
struct PixelView {
  const std::uint8_t* pixels = nullptr;
  int width = 0;
  int height = 0;
  /// Bytes from one row to the next, at least 3 x width.
  std::size_t stride = 0;
};

}  // namespace millrace
