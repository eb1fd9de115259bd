// SPDX-License-Identifier: Apache-2.0
#include "png/png_info.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/orientation.h"
#include "png/png_text.h"

namespace millrace {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t signature_bytes = 8;
/// Bytes of a chunk without data: length, name and checksum.
constexpr std::size_t chunk_bytes = 12;

std::uint32_t big_endian32(Bytes bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t n = 0; n < 4; ++n)
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + n]);
  return value;
}

struct PngChunk {
  std::string_view name;
  Bytes data;
};

/// Reads the chunks of a file, one after the other.
class PngChunks {
 public:
  explicit PngChunks(Bytes bytes) : bytes_(bytes) {}

  /// Returns false at the file's end. `chunk.data` is then the available part of the last chunk's
  /// data.
  bool next(PngChunk& chunk) {
    chunk = {};
    if (bytes_.size() - at_ < chunk_bytes) return false;
    const std::size_t length = big_endian32(bytes_, at_);
    chunk.name = {reinterpret_cast<const char*>(bytes_.data()) + at_ + 4, 4};
    begin_ = at_ + 8;
    const std::size_t there = bytes_.size() - at_ - chunk_bytes;
    chunk.data = bytes_.subspan(begin_, std::min(length, there));
    if (length > there) return false;
    at_ += chunk_bytes + length;
    return true;
  }
  /// Returns the offset of the last chunk's data.
  std::size_t begin() const { return begin_; }

 private:
  Bytes bytes_;
  std::size_t at_ = signature_bytes;
  std::size_t begin_ = 0;
};

Status read_ihdr(const PngChunk& chunk, PngInfo& info) {
  if (chunk.name != "IHDR" || chunk.data.size() != 13)
    return Status::bad("it does not begin with an IHDR chunk of 13 bytes");
  const std::uint32_t width = big_endian32(chunk.data, 0);
  const std::uint32_t height = big_endian32(chunk.data, 4);
  constexpr std::uint32_t most = 0x7FFFFFFF;
  if (width == 0 || height == 0 || width > most || height > most)
    return Status::bad("its header says " + std::to_string(width) + " x " + std::to_string(height) +
                       " pixels");
  info.width = static_cast<int>(width);
  info.height = static_cast<int>(height);
  info.bits_per_sample = std::to_integer<int>(chunk.data[8]);
  const int colour = std::to_integer<int>(chunk.data[9]);
  info.interlaced = chunk.data[12] != std::byte{0};
  using Colour = PngInfo::Colour;
  struct Type {
    Colour colour;
    int components;
    const char* name;
  };
  // Indexed by the number in the file. Two numbers are not used.
  constexpr std::array<Type, 7> types{{{Colour::grey, 1, "PNG grey, "},
                                       {},
                                       {Colour::rgb, 3, "PNG RGB, "},
                                       {Colour::palette, 1, "PNG palette, "},
                                       {Colour::grey_alpha, 2, "PNG grey and alpha, "},
                                       {},
                                       {Colour::rgb_alpha, 4, "PNG RGB and alpha, "}}};
  if (colour >= static_cast<int>(types.size()) ||
      types[static_cast<std::size_t>(colour)].components == 0)
    return Status::bad("its header says colour type " + std::to_string(colour));
  const Type& type = types[static_cast<std::size_t>(colour)];
  info.colour = type.colour;
  info.components = type.components;
  info.scan_type = type.name + std::to_string(info.bits_per_sample) +
                   (info.bits_per_sample == 1 ? " bit" : " bits") +
                   (info.interlaced ? ", interlaced" : "");
  return Status::ok();
}

/// Metadata that may state the orientation: the last one of each kind in the file.
class PngMetadata {
 public:
  void take(const PngChunk& chunk) {
    if (chunk.name == "eXIf") exif_ = chunk.data;
    const auto text = read_png_text(chunk.name, chunk.data);
    if (!text) return;
    if (text->keyword == "Raw profile type exif") profile_ = text;
    if (text->keyword == "XML:com.adobe.xmp") xmp_ = text;
  }

  /// Inflates at most one text of each kind.
  std::optional<int> orientation() const {
    std::vector<std::byte> profile;
    std::vector<std::byte> packet;
    if (profile_ && !exif_) {
      std::vector<std::byte> inflated;
      profile = raw_profile(plain_text(*profile_, inflated));
    }
    return stated_orientation(exif_.value_or(profile), xmp_ ? plain_text(*xmp_, packet) : Bytes{});
  }

 private:
  std::optional<Bytes> exif_;
  std::optional<PngText> profile_;
  std::optional<PngText> xmp_;
};

}  // namespace

Status read_png_info(Bytes encoded, PngInfo& info) {
  info = {};
  info.kind = ImageKind::png;
  PngChunks chunks(encoded);
  PngChunk chunk;
  PngMetadata metadata;
  if (!chunks.next(chunk)) return Status::bad("it ends in its header");
  if (Status read = read_ihdr(chunk, info); !read.is_ok()) return read;
  for (bool whole = true; whole;) {
    whole = chunks.next(chunk);
    if (chunk.name == "IDAT" && info.header_bytes == 0) info.header_bytes = chunks.begin();
    if (!whole || chunk.name == "IEND") break;
    metadata.take(chunk);
  }
  info.orientation = metadata.orientation();
  if (info.header_bytes == 0) return Status::bad("it ends before its pixels");
  return Status::ok();
}

}  // namespace millrace
