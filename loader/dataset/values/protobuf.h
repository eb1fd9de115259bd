// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

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
  explicit ProtobufReader(std::span<const std::byte> message) : message_(message) {}

  /// False at the message's end, and where something is wrong; then problem() is not empty.
  bool next(ProtobufField& field);
  const std::string& problem() const { return problem_; }

 private:
  bool varint(std::uint64_t& number);
  bool fixed(std::size_t bytes, std::uint64_t& number);
  bool fail(const std::string& what);

  std::span<const std::byte> message_;
  std::size_t at_ = 0, field_at_ = 0;
  std::string problem_;
};

// Repeated numbers may lie packed in one field, each in a field of its own, or both in turn. These
// append what one field has; false if its wire type is another one, or packed values are cut short.
bool append_floats(const ProtobufField& field, std::vector<float>& numbers);
/// int32, int64, bool and enumerations; the low 32 bits of each if `is_32_bits`, with their sign.
bool append_integers(const ProtobufField& field, std::vector<std::int64_t>& numbers,
                     bool is_32_bits);

}  // namespace millrace
