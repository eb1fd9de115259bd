// SPDX-License-Identifier: Apache-2.0
#include "dataset/lmdb/keys.h"

#include <algorithm>

#include "dataset/packed/lmdb_pages.h"

namespace millrace {
namespace {

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

/// Returns whether text does not contain this byte. UTF-8 lacks 0xFF, and negative numbers have it.
bool is_outside_text(char c) { return is_control(c) || static_cast<unsigned char>(c) == 0xFF; }

std::string_view without_end(std::string_view key) {
  // Programs in C often include the terminating zero in the key's length.
  if (key.ends_with('\0')) key.remove_suffix(1);
  return key;
}

std::string_view without_line_end(std::string_view key) {
  if (key.ends_with('\n')) key.remove_suffix(1);
  if (key.ends_with('\r')) key.remove_suffix(1);
  return key;
}

std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "0x";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += digits[byte >> 4];
    text += digits[byte & 0xF];
  }
  return text;
}

}  // namespace

bool is_metadata_key(std::string_view key) {
  key = without_line_end(without_end(key));
  return (key.size() > 4 && key.starts_with("__") && key.ends_with("__")) ||
         std::ranges::find(metadata_key_beginnings.begin() + 1, metadata_key_beginnings.end(),
                           key) != metadata_key_beginnings.end();
}

std::uint64_t number_of(std::string_view bytes, bool is_little_endian) {
  std::uint64_t number = 0;
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const char c = is_little_endian ? bytes[bytes.size() - 1 - n] : bytes[n];
    number = number << 8 | static_cast<unsigned char>(c);
  }
  return number;
}

bool are_numbers(std::span<const std::string> some) {
  if (some.empty()) return false;
  const std::size_t length = some.front().size();
  return (length == 4 || length == 8) &&
         std::ranges::all_of(some, [&](const auto& one) { return one.size() == length; }) &&
         std::ranges::any_of(some, [](const auto& one) {
           return std::ranges::any_of(without_end(one), is_outside_text);
         });
}

bool are_little_endian(std::span<const std::string> numbers) {
  std::uint64_t little = 0, big = 0;
  for (const std::string& number : numbers) {
    little = std::max(little, number_of(number, true));
    big = std::max(big, number_of(number, false));
  }
  return little <= big;
}

KeyNames::KeyNames(std::uint16_t tree_flags, std::span<const std::string> some_keys) {
  if ((tree_flags & lmdb::integer_keys) != 0)
    kind_ = Kind::little_endian;
  else if (are_numbers(some_keys))
    kind_ = are_little_endian(some_keys) ? Kind::little_endian : Kind::big_endian;
}

std::string KeyNames::name(std::string_view key) const {
  if (kind_ != Kind::text && (key.size() == 4 || key.size() == 8))
    return std::to_string(number_of(key, kind_ == Kind::little_endian));
  key = without_end(key);
  return key.empty() || std::ranges::any_of(key, is_control) ? hexadecimal(key) : std::string(key);
}

}  // namespace millrace
