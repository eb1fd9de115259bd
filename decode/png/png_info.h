// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image_decoder.h>

#include <cstddef>
#include <span>

namespace millrace {

/// What the chunks of a PNG say of it (PNG, third edition), without anything decoded. The
/// orientation is that of its last eXIf chunk, wherever it stands, as in Pillow; EXIF that is
/// hidden in a text chunk and XMP are not looked at.
struct PngInfo : ImageInfo {
  enum class Colour { grey, rgb, palette, grey_alpha, rgb_alpha };

  Colour colour = Colour::grey;
  bool interlaced = false;
};

/// Reads them. Bad, with the reason, where the chunks are damaged or cut short before the pixels'
/// first. Checksums are not looked at. The bytes begin with a PNG's signature.
Status read_png_info(std::span<const std::byte> encoded, PngInfo& info);

}  // namespace millrace
