// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataset/values/byte_cursor.h"

namespace millrace {

/// Encoding of a field's value. The types 3 and 4 begin and end groups, which are refused.
enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// Returns the type's name for messages.
const char* to_string(WireType type);

struct ProtobufField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t integer = 0;         ///< the value, unless `bytes` has it
  std::span<const std::byte> bytes;  ///< for WireType::bytes: text, bytes, a message, packed values
  std::size_t offset = 0;            ///< offset in the message
};

/// Iterates over the fields of one message in their order. It is a view: it copies nothing and
/// knows no message definitions. Bits of a varint beyond 64 are dropped, as in protobuf. A varint
/// of more than ten bytes is an error.
///
/// Source: https://protobuf.dev/programming-guides/encoding/.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::span<const std::byte> message) : at_(message) {}

  /// Reads the next field. Returns false at the message's end and on an error; then problem() is
  /// not empty.
  bool next(ProtobufField& field);
  const std::string& problem() const { return problem_; }

 private:
  bool fail(const ProtobufField& field, const std::string& what);

  ByteCursor at_;
  std::string problem_;
};

/// Checks that a field has the type `type`. Returns the problem, "label at byte 9 is bytes, not a
/// varint", or an empty text. `name` is the field's name in the message definition.
std::string type_problem(const ProtobufField& field, const char* name, WireType type);

// Repeated numbers may be packed in one field, be in a field each, or mix the two. These functions
// append the numbers of one field. They return the problem as type_problem() does, or an empty
// text.
std::string append_floats(const ProtobufField& field, const char* name,
                          std::vector<float>& numbers);
std::string append_int32s(const ProtobufField& field, const char* name,
                          std::vector<std::int64_t>& numbers);
std::string append_int64s(const ProtobufField& field, const char* name,
                          std::vector<std::int64_t>& numbers);

}  // namespace millrace
