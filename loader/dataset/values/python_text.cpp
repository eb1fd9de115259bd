// SPDX-License-Identifier: Apache-2.0
#include "dataset/values/python_text.h"

#include <utf8.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <system_error>

namespace millrace {
namespace {

template <typename Number, typename... Base>
std::optional<Number> number_of(std::string_view text, Base... base) {
  Number number{};
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, base...);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Parses exactly `digits` hexadecimal digits of `text` from position `at`.
std::optional<std::uint32_t> hexadecimal(std::string_view text, std::size_t at,
                                         std::size_t digits) {
  if (text.size() - at < digits) return std::nullopt;
  return number_of<std::uint32_t>(text.substr(at, digits), 16);
}

/// Returns the character that a letter after a backslash stands for; 0 for other letters.
char plain_escape(char letter) {
  switch (letter) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case '\\':
    case '\'':
    case '"':
      return letter;
    default:
      return 0;
  }
}

bool append_character(std::uint32_t character, std::string& text) {
  const bool is_surrogate = character >= 0xd800 && character <= 0xdfff;
  if (character > 0x10ffff || is_surrogate) return false;
  utf8::unchecked::append(character, std::back_inserter(text));
  return true;
}

}  // namespace

std::optional<std::int64_t> integer_of(std::string_view line) {
  return number_of<std::int64_t>(line);
}

std::optional<double> real_of(std::string_view line) { return number_of<double>(line); }

std::optional<std::string_view> string_of(std::string_view line, std::string& unescaped) {
  if (line.size() < 2 || (line[0] != '\'' && line[0] != '"') || line.back() != line[0])
    return std::nullopt;
  const std::string_view inner = line.substr(1, line.size() - 2);
  if (inner.find('\\') == std::string_view::npos) return inner;
  const std::size_t begin = unescaped.size();
  for (std::size_t n = 0; n < inner.size(); ++n) {
    if (inner[n] != '\\') {
      unescaped += inner[n];
      continue;
    }
    if (++n == inner.size()) return std::nullopt;
    if (inner[n] == 'x') {
      const auto byte = hexadecimal(inner, n + 1, 2);
      if (!byte) return std::nullopt;
      unescaped += static_cast<char>(*byte);
      n += 2;
    } else if (const char letter = plain_escape(inner[n]); letter != 0) {
      unescaped += letter;
    } else {
      return std::nullopt;
    }
  }
  return std::string_view(unescaped).substr(begin);
}

std::optional<std::string_view> unicode_of(std::string_view line, std::string& unescaped) {
  const auto is_plain = [](unsigned char letter) {
    return letter > 0 && letter < 0x80 && letter != '\\';
  };
  if (std::ranges::all_of(line, is_plain)) return line;
  const std::size_t begin = unescaped.size();
  for (std::size_t n = 0; n < line.size(); ++n) {
    // Other backslashes are literal, and so is the character that follows.
    const bool is_escape = line[n] == '\\' && n + 1 < line.size();
    const std::size_t digits = !is_escape ? 0 : line[n + 1] == 'u' ? 4 : line[n + 1] == 'U' ? 8 : 0;
    if (digits > 0) {
      const auto character = hexadecimal(line, n + 2, digits);
      if (!character || !append_character(*character, unescaped)) return std::nullopt;
      n += 1 + digits;
      continue;
    }
    append_character(static_cast<std::uint8_t>(line[n]), unescaped);
    if (is_escape) append_character(static_cast<std::uint8_t>(line[++n]), unescaped);
  }
  return std::string_view(unescaped).substr(begin);
}

}  // namespace millrace
