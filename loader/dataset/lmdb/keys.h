// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace millrace {

/// What the keys of entries begin with that describe a dataset and are no records of it.
inline constexpr std::array<std::string_view, 5> metadata_key_beginnings = {
    "__", "num-samples", "num_samples", "length", "meta"};
/// Whether it is one of those keys: `__len__`, `__keys__` and the like, or one of the other
/// beginnings alone. A line end or a zero after it does not matter.
bool is_metadata_key(std::string_view key);

/// How the keys of a database are shown to people.
class KeyNames {
 public:
  KeyNames() = default;
  /// Of a tree with these flags, by some of its keys: numbers of 4 or 8 bytes in either order of
  /// bytes, or text.
  KeyNames(std::uint16_t tree_flags, std::span<const std::string> some_keys);

  /// One line: text without control characters, or a number; or its bytes in hexadecimal.
  std::string name(std::string_view key) const;

 private:
  enum class Kind : std::uint8_t { text, little_endian, big_endian };
  Kind kind_ = Kind::text;
};

/// The number that 1, 4 or 8 bytes are.
std::uint64_t number_of(std::string_view bytes, bool is_little_endian);
/// Whether some are numbers rather than text: all have one length of 4 or 8 bytes, and of one a
/// byte is none of a text.
bool are_numbers(std::span<const std::string> some);
/// The order of bytes in which the largest of some numbers is smaller.
bool are_little_endian(std::span<const std::string> numbers);

}  // namespace millrace
