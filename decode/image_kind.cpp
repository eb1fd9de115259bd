// SPDX-License-Identifier: Apache-2.0
#include "image_kind.h"

#include <algorithm>
#include <string_view>

namespace millrace {
namespace {

struct Magic {
  std::size_t offset;
  std::string_view bytes;
  std::string_view kind;
};

using namespace std::string_view_literals;

constexpr Magic magics[] = {
    {0, "\x89PNG\r\n\x1a\n"sv, "PNG"},
    {8, "WEBP"sv, "WebP"},
    {0, "GIF87a"sv, "GIF"},
    {0, "GIF89a"sv, "GIF"},
    {0, "BM"sv, "BMP"},
    {0, "II*\0"sv, "TIFF"},
    {0, "MM\0*"sv, "TIFF"},
    {4, "ftypavif"sv, "AVIF"},
    {4, "ftypavis"sv, "AVIF"},
    {4, "ftyphei"sv, "HEIC"},
    {4, "ftyphev"sv, "HEIC"},
    {4, "ftypmif1"sv, "HEIC"},
    {0, "\xff\x0a"sv, "JPEG XL"},
    {4, "JXL \r\n"sv, "JPEG XL"},
    {4, "jP  \r\n"sv, "JPEG 2000"},
};

std::string hex(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (!text.empty()) text += ' ';
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace

std::string why_no_jpeg(std::span<const std::byte> encoded) {
  if (encoded.empty()) return "empty (0 bytes)";
  const std::string_view bytes(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  if (bytes.starts_with("\xff\xd8"sv)) return {};
  for (const Magic& magic : magics)
    if (bytes.size() >= magic.offset && bytes.substr(magic.offset).starts_with(magic.bytes))
      return "a " + std::string(magic.kind) + " image; only JPEG is supported";
  return "no JPEG (starts with " + hex(bytes.substr(0, 4)) + ")";
}

}  // namespace millrace
