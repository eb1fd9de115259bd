// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image_decoder.h>

#include <cstddef>
#include <span>

namespace millrace {

/// The properties that the chunks of a WebP state (WebP container specification, RFC 9649), without
/// decoding. The orientation comes from the EXIF or XMP chunk, if the header announces one.
struct WebpInfo : ImageInfo {
  bool lossless = false;
  bool alpha = false;
  bool animated = false;
  /// The bytes that libwebp decodes: the whole file, or the chunks of an animation's first frame.
  std::span<const std::byte> image;
  /// The place of that image on the canvas.
  Region frame;
};

/// Reads the properties. Returns a bad status, with the reason, if the chunks up to the first image
/// are corrupt, or if the file is shorter than it states. Bytes 8 to 11 must be "WEBP".
Status read_webp_info(std::span<const std::byte> encoded, WebpInfo& info);

}  // namespace millrace
