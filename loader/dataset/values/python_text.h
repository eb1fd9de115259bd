// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// Values as the lines of pickle's protocol 0 have them. All functions may be called from any thread
// at once.

/// A decimal integer; nullopt if it is none, or beyond int64.
std::optional<std::int64_t> integer_of(std::string_view line);

/// A float as repr() writes it; nullopt if it is none.
std::optional<double> real_of(std::string_view line);

/// The bytes of a string as repr() of Python 2 writes it, in quotes. They are a view of the line,
/// or of `unescaped`, to which they are appended where something is escaped. Nullopt if it is no
/// such string, or has escapes that repr() does not write.
std::optional<std::string_view> string_of(std::string_view line, std::string& unescaped);

/// A text in Python's encoding raw-unicode-escape, as UTF-8: a view as of string_of(), at most
/// twice as long as the line. Nullopt if it has escapes that are cut short or are no character.
std::optional<std::string_view> unicode_of(std::string_view line, std::string& unescaped);

}  // namespace millrace
