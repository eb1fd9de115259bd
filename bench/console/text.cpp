// SPDX-License-Identifier: Apache-2.0
#include "console/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace millrace::cli {
namespace {

/// How long the UTF-8 character is that the text begins with; 0 where it begins with none, or with
/// a control character.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const std::size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                             : (first & 0xF0) == 0xE0         ? 3
                             : first >= 0xF0 && first <= 0xF4 ? 4
                                                              : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t at = 1; at < length; ++at)
    if ((byte(at) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates, beyond Unicode, and the control characters behind ASCII's.
  const unsigned second = byte(1);
  const bool refused = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                       (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F) ||
                       (first == 0xC2 && second < 0xA0);
  return refused ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t length = character_bytes(text);
    if (length == 0)
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else
      shown += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return shown;
}

std::string bytes_text(double bytes) {
  constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < std::size(units); ++unit) bytes /= 1000;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 99.95 ? 0 : 1, units[unit]);
}

std::string count_text(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun,
                     count == 1                                    ? ""
                     : noun.ends_with("s") || noun.ends_with("ch") ? "es"
                                                                   : "s");
}

std::string table_row(std::string_view name, std::string_view value, int width) {
  return fmt::format("  {:<{}}{}\n", name, width, value);
}

}  // namespace millrace::cli
