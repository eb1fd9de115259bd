// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/image_decoder.h>

#include <cstddef>
#include <span>

namespace millrace {

/// What the chunks of a WebP say of it (WebP container specification, RFC 9649), without anything
/// decoded. The orientation is that of its EXIF chunk, if its header announces one.
struct WebpInfo : ImageInfo {
  bool lossless = false;
  bool alpha = false;
  bool animated = false;
  /// What libwebp decodes: the whole file, or the chunks of the first frame of an animation.
  std::span<const std::byte> image;
  /// Where that lies on the canvas.
  Region frame;
};

/// Reads them. Bad, with the reason, where the chunks are damaged up to the first image, and where
/// the file is shorter than it says. The bytes have "WEBP" where a WebP has it.
Status read_webp_info(std::span<const std::byte> encoded, WebpInfo& info);

}  // namespace millrace
