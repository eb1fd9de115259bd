// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace millrace {

/// Parses the values of a database of labels. Immutable.
class LabelValues {
 public:
  /// Takes values as they are: text of any length.
  LabelValues() = default;
  /// Chooses the encoding from a sample of the values. Integers in decimal, or of 1, 4 or 8 bytes
  /// in either byte order, become int64. Integers of 4 and 8 bytes are signed; the majority of the
  /// sample decides their byte order. Other values are taken as they are.
  explicit LabelValues(std::span<const std::string> some);

  /// Makes the field "label" from a value. `number` is the memory of an integer label. Returns bad
  /// if the sample had integers and this value is not one.
  Status read(std::span<const std::byte> value, std::int64_t& number, RecordField& field) const;

 private:
  enum class Kind : std::uint8_t { text, decimal, little_endian, big_endian };
  Kind kind_ = Kind::text;
};

}  // namespace millrace
