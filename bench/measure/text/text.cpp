// SPDX-License-Identifier: Apache-2.0
#include "measure/text/text.h"

#include <fmt/format.h>
#include <utf8.h>

#include <iterator>

namespace millrace::cli {

namespace {

std::string without_controls(std::string_view text, bool keeps_lines) {
  std::string shown;
  for (auto at = text.begin(); at != text.end();) {
    const auto begin = at;
    bool is_shown = false;
    try {
      const std::uint32_t letter = utf8::next(at, text.end());
      is_shown =
          (letter >= 0x20 && (letter < 0x7F || letter >= 0xA0)) || (letter == '\n' && keeps_lines);
    } catch (const utf8::exception&) {
      at = begin + 1;
    }
    if (is_shown)
      shown.append(begin, at);
    else
      for (const char byte : std::string_view(begin, at))
        shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view text) { return without_controls(text, false); }

std::string printable_lines(std::string_view text) { return without_controls(text, true); }

std::string bytes_text(double bytes) {
  constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < std::size(units); ++unit) bytes /= 1000;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 99.95 ? 0 : 1, units[unit]);
}

std::string percent_text(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::string count_text(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun,
                     count == 1                                                           ? ""
                     : noun.ends_with("s") || noun.ends_with("x") || noun.ends_with("ch") ? "es"
                                                                                          : "s");
}

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string table_row(std::string_view name, std::string_view value, int width) {
  return fmt::format("  {:<{}}{}\n", name, width, value);
}

}  // namespace millrace::cli
