// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace millrace {

/// Prefixes of the keys that describe a dataset and are not records.
inline constexpr std::array<std::string_view, 5> metadata_key_beginnings = {
    "__", "num-samples", "num_samples", "length", "meta"};
/// Returns whether a key is metadata: `__len__`, `__keys__` and the like, or exactly one of the
/// other prefixes. A line end or a zero byte after it is ignored.
bool is_metadata_key(std::string_view key);

/// Shows the keys of a database in messages.
class KeyNames {
 public:
  KeyNames() = default;
  /// Chooses the form of all keys from the tree's flags and a sample of its keys. The form is text,
  /// or numbers of 4 or 8 bytes in either byte order.
  KeyNames(std::uint16_t tree_flags, std::span<const std::string> some_keys);

  /// Returns one line: the text without control characters, the number, or the bytes in
  /// hexadecimal.
  std::string name(std::string_view key) const;

 private:
  enum class Kind : std::uint8_t { text, little_endian, big_endian };
  Kind kind_ = Kind::text;
};

/// Returns the unsigned number in 1, 4 or 8 bytes.
std::uint64_t number_of(std::string_view bytes, bool is_little_endian);
/// Returns whether these keys or values are numbers rather than text: all have the same length, 4
/// or 8 bytes, and at least one has a byte that text does not contain.
bool are_numbers(std::span<const std::string> some);
/// Guesses the byte order of unsigned numbers: little-endian if the largest number is smaller in
/// that order.
bool are_little_endian(std::span<const std::string> numbers);

}  // namespace millrace
