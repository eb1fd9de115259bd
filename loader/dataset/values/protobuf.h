// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataset/values/byte_cursor.h"

namespace millrace {

/// How a field's value lies on the wire. 3 and 4 begin and end groups, which are refused.
enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// The type as messages name it.
const char* to_string(WireType type);

struct ProtobufField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t integer = 0;  ///< the value, unless `bytes` has it
  std::span<const std::byte>
      bytes;               ///< of WireType::bytes: a text, bytes, a message, packed values
  std::size_t offset = 0;  ///< where it begins in the message
};

/// The fields of one message, in the order in which they lie there: a view, which copies nothing
/// and knows no message's definition. Bits of a varint beyond 64 are dropped, as protobuf does; one
/// of more than ten bytes is bad.
///
/// After https://protobuf.dev/programming-guides/encoding/.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::span<const std::byte> message) : at_(message) {}

  /// False at the message's end, and where something is wrong; then problem() is not empty.
  bool next(ProtobufField& field);
  const std::string& problem() const { return problem_; }

 private:
  bool fail(const ProtobufField& field, const std::string& what);

  ByteCursor at_;
  std::string problem_;
};

/// Why a field that a message calls `name` is not of the type: "label at byte 9 is bytes, not a
/// varint"; empty if it is.
std::string type_problem(const ProtobufField& field, const char* name, WireType type);

// Repeated numbers may lie packed in one field, each in a field of its own, or both in turn. These
// append what one field has, and return what is wrong with it as type_problem() does, or empty.
std::string append_floats(const ProtobufField& field, const char* name,
                          std::vector<float>& numbers);
std::string append_int32s(const ProtobufField& field, const char* name,
                          std::vector<std::int64_t>& numbers);
std::string append_int64s(const ProtobufField& field, const char* name,
                          std::vector<std::int64_t>& numbers);

}  // namespace millrace
