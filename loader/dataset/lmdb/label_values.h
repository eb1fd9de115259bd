// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace millrace {

/// How the values of a database of labels are read. Immutable.
class LabelValues {
 public:
  /// As they are: text of any length.
  LabelValues() = default;
  /// By some values: integers in decimal, or of 1, 4 or 8 bytes in either order, become int64;
  /// others are as they are.
  explicit LabelValues(std::span<const std::string> some);

  /// Makes the field "label" of a value; `number` is its memory. Bad is what is no integer among
  /// integers.
  Status read(std::span<const std::byte> value, std::int64_t& number, RecordField& field) const;

 private:
  enum class Kind : std::uint8_t { text, decimal, little_endian, big_endian };
  Kind kind_ = Kind::text;
};

}  // namespace millrace
