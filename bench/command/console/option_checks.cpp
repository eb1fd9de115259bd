// SPDX-License-Identifier: Apache-2.0
#include "command/console/option_checks.h"

#include <millrace/detail/json_text.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cmath>

namespace millrace::cli {
namespace {

bool is_name(const std::string& text) { return !text.empty() && text.size() < PATH_MAX; }

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text, std::uint64_t kilobyte) {
  constexpr std::string_view prefixes = "kmgtpe";
  constexpr double too_many = 9223372036854775808.0;
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::optional<double> number = parse_number<double>(text.substr(0, digits));
  if (!number) return {};
  std::string unit(text.substr(std::min(text.find_first_not_of(' ', digits), text.size())));
  std::ranges::transform(unit, unit.begin(),
                         [](unsigned char letter) { return static_cast<char>(tolower(letter)); });
  if (unit.ends_with('b')) unit.pop_back();
  const bool binary = unit.size() == 2 && unit.ends_with('i');
  if (binary) unit.pop_back();
  const std::size_t power = unit.empty() ? 0 : prefixes.find(unit) + 1;
  if (unit.size() > 1 || (power == 0 && !unit.empty())) return {};
  const double bytes =
      *number * std::pow(static_cast<double>(binary ? 1024 : kilobyte), static_cast<double>(power));
  if (bytes < 1 || bytes >= too_many) return {};
  return static_cast<std::uint64_t>(bytes);
}

std::string must_be(const std::string& what, const std::string& value) {
  return fmt::format("must be {}, not \"{}\"", what, cut(value));
}

CLI::Validator bytes_check(std::uint64_t kilobyte) {
  return CLI::Validator(
      [kilobyte](std::string& text) {
        const std::optional<std::uint64_t> bytes = parse_bytes(text, kilobyte);
        if (!bytes) return must_be("bytes, such as 500M, 1.5G or 2GiB", text);
        text = std::to_string(*bytes);
        return std::string();
      },
      "");
}

CLI::Validator input_check() {
  return CLI::Validator(
      [](const std::string& text) {
        return is_name(text) ? std::string() : must_be("the name of a file or folder", text);
      },
      "");
}

CLI::Validator output_check(bool may_be_stdout) {
  return CLI::Validator(
      [may_be_stdout](const std::string& text) {
        return is_name(text) && (may_be_stdout || text != "-") ? std::string()
                                                               : must_be("a file to write", text);
      },
      "");
}

}  // namespace millrace::cli
