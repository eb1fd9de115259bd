// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// Parsers of the text lines of pickle protocol 0. All functions are thread-safe.

/// Parses a decimal integer; nullopt for other text and beyond int64.
std::optional<std::int64_t> integer_of(std::string_view line);

/// Parses a float as repr() writes it; nullopt for other text.
std::optional<double> real_of(std::string_view line);

/// Parses a string as repr() of Python 2 writes it, in quotes. Returns a view of the line, or, if
/// the line has escapes, a view of `unescaped`, to which the bytes are appended. Returns nullopt
/// for other text and for escapes that repr() does not write.
std::optional<std::string_view> string_of(std::string_view line, std::string& unescaped);

/// Converts a text in Python's encoding raw-unicode-escape to UTF-8. Returns a view as string_of()
/// does, at most twice as long as the line. Returns nullopt for escapes that are cut short or are
/// not a character.
std::optional<std::string_view> unicode_of(std::string_view line, std::string& unescaped);

}  // namespace millrace
