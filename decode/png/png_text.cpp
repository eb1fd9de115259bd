// SPDX-License-Identifier: Apache-2.0
#include "png/png_text.h"

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <new>

namespace millrace {
namespace {

using Bytes = std::span<const std::byte>;

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Removes a zero-terminated string from the front of `rest`. Returns nullopt without a zero.
std::optional<std::string_view> take_string(Bytes& rest) {
  const std::size_t length = text_of(rest).find('\0');
  if (length == std::string_view::npos) return {};
  const std::string_view string = text_of(rest.first(length));
  rest = rest.subspan(length + 1);
  return string;
}

/// Inflates a zlib stream to at most 1 MiB. Returns nothing if it is longer or corrupt.
std::vector<std::byte> inflated(Bytes bytes) {
  constexpr std::size_t step = 1 << 15;
  constexpr std::size_t most = 1 << 20;
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&stream, inflateEnd);
  // zlib does not write to its input; its type is const only with ZLIB_CONST.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::vector<std::byte> out;
  int result = Z_OK;
  while (result == Z_OK && out.size() <= most) {
    const std::size_t size = out.size();
    out.resize(size + step);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + size);
    stream.avail_out = static_cast<uInt>(step);
    result = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
  }
  const bool truncated = result == Z_BUF_ERROR;
  if ((result != Z_STREAM_END && !truncated) || out.size() > most) out.clear();
  return out;
}

/// Returns the value of a hexadecimal digit; -1 for another character.
int hexadecimal_digit(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  const char lower = static_cast<char>(character | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::optional<PngText> read_png_text(std::string_view name, Bytes data) {
  if (name != "tEXt" && name != "zTXt" && name != "iTXt") return {};
  const auto keyword = take_string(data);
  if (!keyword) return {};
  if (name == "tEXt") return PngText{*keyword, data, false};
  bool compressed = true;
  if (name == "iTXt") {
    if (data.empty()) return {};
    compressed = data[0] != std::byte{0};
    data = data.subspan(1);
  }
  const bool known = !data.empty() && (!compressed || data[0] == std::byte{0});
  if (!known) return {};  // only method 0, zlib, is defined
  data = data.subspan(1);
  const bool has_languages = name == "iTXt";
  if (has_languages && (!take_string(data) || !take_string(data))) return {};
  return PngText{*keyword, data, compressed};
}

Bytes plain_text(const PngText& text, std::vector<std::byte>& memory) {
  if (!text.compressed) return text.text;
  memory = inflated(text.text);
  return memory;
}

std::vector<std::byte> raw_profile(Bytes text) {
  std::string_view rest = text_of(text);
  for (int line = 0; line < 3; ++line) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
  std::vector<std::byte> bytes;
  int high = -1;
  for (const char character : rest) {
    if (character == '\n' || character == ' ') continue;
    const int digit = hexadecimal_digit(character);
    if (digit < 0) return {};
    if (high < 0) {
      high = digit;
      continue;
    }
    bytes.push_back(static_cast<std::byte>(high << 4 | digit));
    high = -1;
  }
  if (high >= 0) bytes.clear();
  return bytes;
}

}  // namespace millrace
