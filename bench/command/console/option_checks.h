// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "measure/text/text.h"

namespace millrace::cli {

/// Parses "64", "500kB", "1.5G" or "2GiB" as bytes. kB and k are 1000 or 1024 (`kilobyte`), kiB and
/// ki are 1024, and so on up to E. Nullopt for any other text, a fraction of a byte, or 2^63 and
/// more.
std::optional<std::uint64_t> parse_bytes(std::string_view text, std::uint64_t kilobyte);

/// Message of an option's check: "must be a file to write, not \"-\"".
std::string must_be(const std::string& what, const std::string& value);

/// Range check for `Option::transform`. It also rewrites the number, since CLI11 itself reads "010"
/// as 8 and 2^64 as 2^64 - 1. Integer limits accept only whole numbers.
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

/// Adds an option for a number from `low` to `high`. The default is the current `value`.
template <typename Value, typename Limit>
CLI::Option* add_number(CLI::App& command, const char* name, Value& value, const char* text,
                        Limit low, Limit high, const char* type = "N") {
  return command.add_option(name, value, text)
      ->type_name(type)
      ->capture_default_str()
      ->transform(between(low, high));
}

/// Check for an option in bytes, read by `parse_bytes`; for `Option::transform`.
CLI::Validator bytes_check(std::uint64_t kilobyte);

/// Check for the name of an input: not empty and not longer than file names can be.
CLI::Validator input_check();
/// Check for the name of an output file. "-" (standard output) passes only if `may_be_stdout`.
CLI::Validator output_check(bool may_be_stdout);

}  // namespace millrace::cli
