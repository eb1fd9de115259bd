// SPDX-License-Identifier: Apache-2.0
#include "webp/webp_info.h"

#include <webp/decode.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "codec/orientation.h"

namespace millrace {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t file_header_bytes = 12;
constexpr std::size_t chunk_header_bytes = 8;

std::uint32_t little_endian(Bytes bytes, std::size_t at, std::size_t length) {
  std::uint32_t value = 0;
  while (length > 0) value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + --length]);
  return value;
}

int side_at(Bytes bytes, std::size_t at) { return static_cast<int>(little_endian(bytes, at, 3)); }

std::string_view name_at(Bytes bytes, std::size_t at) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, 4};
}

struct RiffChunk {
  std::string_view name;
  Bytes data;
  /// The bytes from the chunk's header on.
  Bytes whole;
};

/// Takes the next chunk from the rest of a file. Returns false if the rest does not have a complete
/// chunk.
bool take_chunk(Bytes& rest, RiffChunk& chunk) {
  if (rest.size() < chunk_header_bytes) return false;
  const std::size_t length = little_endian(rest, 4, 4);
  const std::size_t padded = length + (length & 1);
  if (length > rest.size() - chunk_header_bytes) return false;
  chunk.name = name_at(rest, 0);
  chunk.data = rest.subspan(chunk_header_bytes, length);
  chunk.whole = rest.first(chunk_header_bytes + length);
  rest = rest.subspan(std::min(chunk_header_bytes + padded, rest.size()));
  return true;
}

Status damaged() { return Status::bad("its chunks are damaged"); }

/// Reads the first frame of an animation: its place and its chunks.
Status read_first_frame(Bytes data, WebpInfo& info) {
  constexpr std::size_t header_bytes = 16;
  if (data.size() < header_bytes) return damaged();
  info.frame = {2 * side_at(data, 0), 2 * side_at(data, 3), side_at(data, 6) + 1,
                side_at(data, 9) + 1};
  if (info.frame.x > info.width - info.frame.width ||
      info.frame.y > info.height - info.frame.height)
    return Status::bad("its first frame does not lie inside its canvas");
  info.image = data.subspan(header_bytes);
  info.header_bytes += header_bytes + chunk_header_bytes;
  return Status::ok();
}

/// Reads the chunks of a file that begins with VP8X.
Status read_extended(Bytes rest, WebpInfo& info) {
  constexpr std::uint32_t animation_flag = 0x02, xmp_flag = 0x04, exif_flag = 0x08;
  RiffChunk chunk;
  if (!take_chunk(rest, chunk) || chunk.data.size() < 10) return damaged();
  const std::uint32_t flags = little_endian(chunk.data, 0, 4);
  info.width = side_at(chunk.data, 4) + 1;
  info.height = side_at(chunk.data, 7) + 1;
  info.animated = (flags & animation_flag) != 0;
  const Bytes file = info.image;
  if (info.animated) info.image = {};
  Bytes exif;
  Bytes xmp;
  while (take_chunk(rest, chunk)) {
    const bool is_image = chunk.name == "ANMF" || chunk.name == "VP8 " || chunk.name == "VP8L";
    if (is_image && info.header_bytes == 0) {
      info.header_bytes =
          static_cast<std::size_t>(chunk.whole.data() - file.data()) + chunk_header_bytes;
      if (info.animated != (chunk.name == "ANMF")) return damaged();
      if (info.animated)
        if (Status read = read_first_frame(chunk.data, info); !read.is_ok()) return read;
    }
    if (chunk.name == "EXIF" && (flags & exif_flag) != 0 && exif.empty()) exif = chunk.data;
    if (chunk.name == "XMP " && (flags & xmp_flag) != 0 && xmp.empty()) xmp = chunk.data;
  }
  info.orientation = stated_orientation(exif, xmp);
  if (info.header_bytes == 0) return Status::bad("it ends before its pixels");
  return Status::ok();
}

Status read_chunks(Bytes encoded, WebpInfo& info) {
  if (name_at(encoded, 0) != "RIFF") return Status::bad("it is not a RIFF file");
  const std::size_t said = little_endian(encoded, 4, 4) + std::size_t{8};
  if (said < file_header_bytes + chunk_header_bytes)
    return Status::bad("it is said to be " + std::to_string(said) + " bytes long");
  if (said > encoded.size())
    return Status::bad("cut short: " + std::to_string(encoded.size()) + " of " +
                       std::to_string(said) + " bytes");
  info.image = encoded.first(said);
  const Bytes chunks = info.image.subspan(file_header_bytes);
  if (name_at(chunks, 0) == "VP8X") return read_extended(chunks, info);
  info.header_bytes = file_header_bytes + chunk_header_bytes;
  return Status::ok();
}

}  // namespace

Status read_webp_info(Bytes encoded, WebpInfo& info) {
  info = {};
  info.kind = ImageKind::webp;
  if (Status read = read_chunks(encoded, info); !read.is_ok()) return read;
  WebPBitstreamFeatures features;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(info.image.data());
  if (WebPGetFeatures(bytes, info.image.size(), &features) != VP8_STATUS_OK)
    return Status::bad("the header of its pixels is damaged");
  if (!info.animated) {
    info.width = features.width;
    info.height = features.height;
    info.frame = {0, 0, features.width, features.height};
  } else if (features.width != info.frame.width || features.height != info.frame.height) {
    return Status::bad("the pixels of its first frame are of another size");
  }
  constexpr int lossless = 2;
  info.lossless = features.format == lossless;
  info.alpha = features.has_alpha != 0;
  info.components = info.alpha ? 4 : 3;
  if (!info.lossless) info.chroma = "4:2:0";
  info.scan_type = std::string(info.lossless ? "WebP lossless" : "WebP lossy") +
                   (info.alpha ? ", alpha" : "") + (info.animated ? ", animated" : "");
  return Status::ok();
}

}  // namespace millrace
