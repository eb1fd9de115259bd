// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "console/text.h"

namespace millrace::cli {

/// "64", "500kB", "1.5G", "2GiB" in bytes: kB and k are 1000 or 1024, kiB and ki are 1024, and so
/// on up to E. Nothing for any other text, for no whole byte, and from 2^63 on.
std::optional<std::uint64_t> parse_bytes(std::string_view text, std::uint64_t kilobyte);

/// What an option's check says of a value: "must be a file to write, not \"-\"".
std::string must_be(const std::string& what, const std::string& value);

/// For `Option::transform`, so that the number is read as it is checked here (CLI11 itself takes
/// "010" for 8 and 2^64 for one less). Whole numbers, unless the limits are none.
template <typename Number>
CLI::Validator between(Number low, Number high) {
  using Parsed = std::conditional_t<std::is_integral_v<Number>, std::uint64_t, Number>;
  return CLI::Validator(
      [low = static_cast<Parsed>(low), high = static_cast<Parsed>(high)](std::string& text) {
        const std::optional<Parsed> number = parse_number<Parsed>(text);
        if (!number || *number < low || *number > high)
          return must_be(
              fmt::format("a {} from {} to {}",
                          std::is_integral_v<Number> ? "whole number" : "number", low, high),
              text);
        text = fmt::format("{}", *number);
        return std::string();
      },
      "");
}

/// Adds an option for a number from `low` to `high`, whose default is what `value` has.
template <typename Value, typename Limit>
CLI::Option* add_number(CLI::App& command, const char* name, Value& value, const char* text,
                        Limit low, Limit high, const char* type = "N") {
  return command.add_option(name, value, text)
      ->type_name(type)
      ->capture_default_str()
      ->transform(between(low, high));
}

/// For an option that takes bytes as `parse_bytes` does; for `Option::transform`.
CLI::Validator bytes_check(std::uint64_t kilobyte);

/// For the name of what is read: no name is empty or longer than any file's.
CLI::Validator input_check();
/// For the name of a file to write; "-", which is standard output, only if that may be.
CLI::Validator output_check(bool may_be_stdout);

}  // namespace millrace::cli
