// SPDX-License-Identifier: Apache-2.0
//
// Values that describe images. They may be copied and used on any thread; what a `PixelView` shows
// must outlive it.
#pragma once

#include <millrace/detail/export.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace MILLRACE_API millrace {

/// The file formats of images that are told apart, whether they can be decoded or not.
/// `pnm` is Netpbm's family, P1 to P7.
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
  pnm
};

/// The format's usual name: "JPEG", "PNG", "JPEG 2000", "PNM" ...; "unknown".
const char* to_string(ImageKind kind);

/// Tells an encoded image's kind by its first bytes (16 are enough).
ImageKind image_kind(std::span<const std::byte> encoded);

/// In pixels.
struct Size {
  int width = 0;
  int height = 0;
  friend bool operator==(const Size&, const Size&) = default;
};

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

}  // namespace millrace
