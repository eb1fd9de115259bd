// SPDX-License-Identifier: Apache-2.0
#include "codec/orientation.h"

#include <cstdint>
#include <cstring>
#include <string_view>

namespace millrace {
namespace {

using namespace std::string_view_literals;
using Bytes = std::span<const std::byte>;

/// Reads numbers of a TIFF structure, in its byte order.
class Tiff {
 public:
  Tiff(Bytes bytes, bool little_endian) : bytes_(bytes), little_endian_(little_endian) {}

  std::optional<std::uint32_t> number(std::size_t at, std::size_t length) const {
    if (at > bytes_.size() || length > bytes_.size() - at) return {};
    std::uint32_t value = 0;
    for (std::size_t n = 0; n < length; ++n)
      value = value << 8 |
              std::to_integer<std::uint32_t>(bytes_[little_endian_ ? at + length - 1 - n : at + n]);
    return value;
  }

 private:
  Bytes bytes_;
  bool little_endian_;
};

bool has_prefix(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

/// Returns the bytes of an integer of a TIFF type; 0 for a type that is not an integer of two or
/// four bytes.
std::size_t integer_bytes(std::uint32_t type) {
  constexpr std::uint32_t type_short = 3, type_long = 4, signed_short = 8, signed_long = 9;
  if (type == type_short || type == signed_short) return 2;
  return type == type_long || type == signed_long ? 4 : 0;
}

Bytes without_exif_names(Bytes block) {
  constexpr std::string_view name = "Exif\0\0"sv;
  while (has_prefix(block, name)) block = block.subspan(name.size());
  return block;
}

/// Returns the orientation tag of an EXIF block; 0 if its value is not an integer; nullopt without
/// the tag.
std::optional<std::uint32_t> exif_orientation(Bytes bytes) {
  const bool little_endian = has_prefix(bytes, "II*\0"sv);
  if (!little_endian && !has_prefix(bytes, "MM\0*"sv)) return {};
  const Tiff tiff(bytes, little_endian);
  const auto directory = tiff.number(4, 4);
  const auto entries = directory ? tiff.number(*directory, 2) : std::nullopt;
  for (std::size_t entry = 0; entries && entry < *entries; ++entry) {
    const std::size_t at = std::size_t{*directory} + 2 + 12 * entry;
    const auto tag = tiff.number(at, 2);
    if (!tag) return {};
    if (*tag != 0x0112) continue;
    const std::size_t length = integer_bytes(tiff.number(at + 2, 2).value_or(0));
    return length == 0 ? 0 : tiff.number(at + 8, length);
  }
  return {};
}

/// Returns the digit of an XMP packet's tiff:Orientation, which is an attribute or an element.
/// Searches the text, as Pillow does, and does not parse XML.
std::optional<std::uint32_t> xmp_orientation(Bytes packet) {
  const std::string_view text(reinterpret_cast<const char*>(packet.data()), packet.size());
  constexpr std::string_view name = "tiff:Orientation"sv;
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    std::string_view value = text.substr(at + name.size());
    if (value.starts_with("=\""sv)) {
      value.remove_prefix(2);
    } else if (value.starts_with('>')) {
      value.remove_prefix(1);
    } else {
      continue;
    }
    if (!value.empty() && value[0] >= '0' && value[0] <= '9')
      return static_cast<std::uint32_t>(value[0] - '0');
  }
  return {};
}

}  // namespace

std::optional<int> stated_orientation(Bytes exif, Bytes xmp) {
  auto orientation = exif_orientation(without_exif_names(exif));
  if (!orientation) orientation = xmp_orientation(xmp);
  if (!orientation || *orientation < 1 || *orientation > 8) return {};
  return static_cast<int>(*orientation);
}

}  // namespace millrace
