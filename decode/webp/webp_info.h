// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image_decoder.h>

#include <cstddef>
#include <span>

namespace millrace {

/// The properties that the chunks of a WebP state (WebP container specification, RFC 9649), without
/// decoding. The orientation is that of its EXIF or XMP chunk, if its header announces one.
struct WebpInfo : ImageInfo {
  bool lossless = false;
  bool alpha = false;
  bool animated = false;
  /// The bytes that libwebp decodes: the whole file, or the chunks of an animation's first frame.
  std::span<const std::byte> image;
  /// The place of that image on the canvas.
  Region frame;
};

/// Reads these chunks. Returns a bad status, with the reason, if they are corrupt up to the first
/// image, or if the file is shorter than it states. The bytes must have a WebP's "WEBP".
Status read_webp_info(std::span<const std::byte> encoded, WebpInfo& info);

}  // namespace millrace
