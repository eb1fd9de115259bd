// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace millrace::cli {

/// Makes a name from a dataset safe for a terminal: bytes of control characters and bytes that are
/// not UTF-8 are written as "\x1b".
std::string printable(std::string_view text);
/// The same for a text of several lines; line ends stay.
std::string printable_lines(std::string_view text);

/// Parses a number in decimal digits; floating types also take a fraction and an exponent. Nullopt
/// for any other text, and for a number out of the type's range.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || read != end) return {};
  if constexpr (std::is_floating_point_v<Number>)
    if (!std::isfinite(number)) return {};
  return number;
}

/// "512 B", "3.4 kB", "54.1 MB": a number of about three digits, with powers of 1000.
std::string bytes_text(double bytes);

/// "12.3%" for a share from 0 to 1.
std::string percent_text(double share);

/// "1 record", "1200 records", "2 batches".
std::string count_text(std::uint64_t count, std::string_view noun);

/// "the step" -> "The step".
std::string capitalised(std::string text);

/// " image bytes " before a value: a row of a table with two columns, of which the first is `width`
/// wide.
std::string table_row(std::string_view name, std::string_view value, int width = 18);

}  // namespace millrace::cli
