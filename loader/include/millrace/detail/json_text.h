// SPDX-License-Identifier: Apache-2.0
// For the folders of millrace alone; it is not installed.
#pragma once

#include <millrace/detail/export.h>

#include <cstddef>
#include <exception>
#include <istream>
#include <string>
#include <string_view>

// What every place that reads JSON asks first, so that a text which came from anywhere costs time
// and stack in proportion to what millrace itself would have written. Threads: all functions may be
// called from any thread at once.

namespace MILLRACE_API millrace {

/// The levels that objects and arrays may be nested, the members of one object, and the bytes of a
/// text where its reader has no other limit.
inline constexpr std::size_t max_json_levels = 64;
inline constexpr std::size_t max_json_members = 1000;
inline constexpr std::size_t max_json_bytes = std::size_t{1} << 20;

/// Why a text is not taken as JSON: "is not valid JSON: ..."; empty where it can be parsed. Takes
/// time linear in the text, and memory for the open levels alone.
std::string json_problem(std::string_view text, std::size_t max_bytes = max_json_bytes);

/// What an exception of the parser's library says, without its code.
std::string json_reason(const std::exception& error);

/// A text to its end, or one byte more than `max_bytes` of it, so that it is seen to be too long.
std::string read_text(std::istream& file, std::size_t max_bytes = max_json_bytes);

/// A text with each byte that is not UTF-8 as "\xe9", so that JSON and HTML take it and different
/// texts stay different.
std::string escape_non_utf8(std::string_view text);

/// A value as messages show it: at most so many bytes, cut between two characters of UTF-8.
std::string cut(std::string text, std::size_t max_bytes = 200);

}  // namespace millrace
