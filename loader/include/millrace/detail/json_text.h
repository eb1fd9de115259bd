// SPDX-License-Identifier: Apache-2.0
// Internal: used only by millrace's own folders and not installed.
#pragma once

#include <millrace/detail/export.h>

#include <cstddef>
#include <exception>
#include <istream>
#include <string>
#include <string_view>

// Checks for all readers of JSON. They limit the time and stack that an untrusted text takes to
// what millrace's own texts need. Threads: all functions may be called by several threads at the
// same time.

namespace MILLRACE_API millrace {

/// Maximal nesting of objects and arrays.
inline constexpr std::size_t max_json_levels = 64;
/// Maximal number of members of one object.
inline constexpr std::size_t max_json_members = 1000;
/// Default limit for the bytes of a text.
inline constexpr std::size_t max_json_bytes = std::size_t{1} << 20;

/// Returns the reason why a text is rejected as JSON: "is not valid JSON: ..."; empty if it can be
/// parsed. Takes time linear in the text. Its memory is proportional to the nesting only.
std::string json_problem(std::string_view text, std::size_t max_bytes = max_json_bytes);

/// Returns the message of an exception of the JSON parser, without its code.
std::string json_reason(const std::exception& error);

/// Reads a text to its end, but at most `max_bytes` + 1 bytes. So the caller can detect a text that
/// is too long.
std::string read_text(std::istream& file, std::size_t max_bytes = max_json_bytes);

/// Replaces each byte that is not UTF-8 by its hexadecimal code, for example "\xe9". JSON and HTML
/// accept the result. Texts that differ only in such bytes stay different.
std::string escape_non_utf8(std::string_view text);

/// Shortens a value for messages to `max_bytes` bytes, cut between two UTF-8 characters.
std::string cut(std::string text, std::size_t max_bytes = 200);

}  // namespace millrace
