// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "dataset/values/value.h"

namespace millrace::testing {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// A literal that contains zero bytes.
template <std::size_t size>
std::string literal(const char (&text)[size]) {
  return std::string(text, size - 1);
}

inline std::string hexadecimal(std::string_view bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += digits[static_cast<std::uint8_t>(byte) >> 4];
    text += digits[static_cast<std::uint8_t>(byte) & 15];
  }
  return text;
}

inline std::string hexadecimal(double number) {
  std::string bytes;
  for (const auto bits = std::bit_cast<std::uint64_t>(number); bytes.size() < 8;)
    bytes += static_cast<char>(bits >> (56 - 8 * bytes.size()));
  return hexadecimal(bytes);
}

inline std::string rendered(std::int64_t integer) { return "i" + std::to_string(integer) + ";"; }
inline std::string rendered(double real) { return "f" + hexadecimal(real) + ";"; }
inline std::string rendered(std::span<const std::byte> bytes) {
  return "b" +
         hexadecimal(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())) +
         ";";
}

inline std::string rendered(const Values& values, const Value& value);

/// A repeated key counts once, at its first position and with its last value, as in Python.
inline std::string rendered_entries(const Values& values, const Value& dictionary) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t n = 0; n < values.size(dictionary); ++n) {
    const auto [key, value] = values.entry(dictionary, n);
    std::pair<std::string, std::string> entry(rendered(values, key), rendered(values, value));
    std::size_t same = 0;
    while (same < entries.size() && entries[same].first != entry.first) ++same;
    if (same < entries.size()) {
      entries[same].second = entry.second;
    } else {
      entries.push_back(std::move(entry));
    }
  }
  std::string text;
  for (const auto& [key, item] : entries) text += key + item;
  return text;
}

/// Returns a value as text, the same text as rendered() in write_values.py.
inline std::string rendered(const Values& values, const Value& value) {
  if (std::holds_alternative<None>(value)) return "N";
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "T" : "F";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return rendered(*integer);
  if (const auto* real = std::get_if<double>(&value)) return rendered(*real);
  if (const auto* bytes = std::get_if<std::span<const std::byte>>(&value)) return rendered(*bytes);
  if (const auto* text = std::get_if<std::string_view>(&value))
    return "s" + hexadecimal(*text) + ";";
  const Collection kind = std::get<Items>(value).kind;
  if (kind == Collection::dictionary) return "{" + rendered_entries(values, value) + "}";
  std::string items;
  for (std::size_t n = 0; n < values.size(value); ++n)
    items += rendered(values, values.item(value, n));
  return kind == Collection::tuple ? "(" + items + ")" : "[" + items + "]";
}

inline std::string rendered(const Values& values) { return rendered(values, values.root()); }

}  // namespace millrace::testing
