// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace millrace {

/// A chunk tEXt, zTXt or iTXt of a PNG (PNG, third edition, 11.3.3). Views the file's bytes.
struct PngText {
  std::string_view keyword;
  std::span<const std::byte> text;
  bool compressed = false;
};

/// Parses a chunk with this name and data. Returns nullopt if it is not a text chunk, or malformed.
std::optional<PngText> read_png_text(std::string_view name, std::span<const std::byte> data);

/// Returns the text of a chunk. A compressed text is inflated into `memory`. Empty if the
/// compressed data are corrupt, or inflate to more than 1 MiB, Pillow's limit. A truncated stream
/// gives the beginning of the text.
std::span<const std::byte> plain_text(const PngText& text, std::vector<std::byte>& memory);

/// Returns the bytes of a "Raw profile", as ImageMagick writes it: two lines, then the count of
/// bytes, then hexadecimal digits. Empty if the digits are invalid.
std::vector<std::byte> raw_profile(std::span<const std::byte> text);

}  // namespace millrace
