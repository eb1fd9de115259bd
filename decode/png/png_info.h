// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image_decoder.h>

#include <cstddef>
#include <span>

namespace millrace {

/// The properties that the chunks of a PNG state (PNG, third edition), without decoding. The
/// orientation comes from the last eXIf chunk, at any position, as in Pillow. Without such a chunk
/// it comes from ImageMagick's text "Raw profile type exif". If EXIF states none, it comes from
/// XMP.
struct PngInfo : ImageInfo {
  enum class Colour { grey, rgb, palette, grey_alpha, rgb_alpha };

  Colour colour = Colour::grey;
  bool interlaced = false;
};

/// Reads the properties. Returns a bad status, with the reason, if the chunks are corrupt or
/// truncated before the first chunk of pixels. Checksums are not verified. The bytes must begin
/// with a PNG's signature.
Status read_png_info(std::span<const std::byte> encoded, PngInfo& info);

}  // namespace millrace
