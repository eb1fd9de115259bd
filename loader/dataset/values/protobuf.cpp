// SPDX-License-Identifier: Apache-2.0
#include "dataset/values/protobuf.h"

#include <bit>

namespace millrace {
namespace {

constexpr std::size_t max_varint_bytes = 10;

bool varint(ByteCursor& at, std::uint64_t& number) {
  number = 0;
  for (std::size_t n = 0; n < max_varint_bytes; ++n) {
    std::uint64_t byte = 0;
    if (!at.little_endian(1, byte)) return false;
    // Only one bit of the tenth byte is used.
    number |= (byte & 0x7f) << (7 * n);
    if (byte < 0x80) return true;
  }
  return false;
}

std::string where(const ProtobufField& field, const char* name) {
  return std::string(name) + " at byte " + std::to_string(field.offset);
}

std::int64_t low_32_bits(std::uint64_t number) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(number));
}

/// `integer_of` converts a varint to the value of the field's type.
template <typename IntegerOf>
std::string append_integers(const ProtobufField& field, const char* name,
                            std::vector<std::int64_t>& numbers, const IntegerOf& integer_of) {
  if (field.type != WireType::bytes) {
    std::string problem = type_problem(field, name, WireType::varint);
    if (problem.empty()) numbers.push_back(integer_of(field.integer));
    return problem;
  }
  ByteCursor at(field.bytes);
  while (at.remaining() > 0) {
    std::uint64_t number = 0;
    if (!varint(at, number)) return where(field, name) + " has a packed varint that does not end";
    numbers.push_back(integer_of(number));
  }
  return {};
}

}  // namespace

const char* to_string(WireType type) {
  switch (type) {
    case WireType::varint:
      return "a varint";
    case WireType::fixed64:
      return "64 bits";
    case WireType::bytes:
      return "bytes";
    case WireType::fixed32:
      return "32 bits";
  }
  return "?";
}

bool ProtobufReader::next(ProtobufField& field) {
  if (!problem_.empty() || at_.remaining() == 0) return false;
  field = {};
  field.offset = at_.offset();
  std::uint64_t tag = 0;
  if (!varint(at_, tag)) return fail(field, "has a tag that does not end");
  // Field numbers have 29 bits.
  if (tag >> 32 != 0 || tag >> 3 == 0)
    return fail(field, "has the invalid field number " + std::to_string(tag >> 3));
  field.number = static_cast<std::uint32_t>(tag >> 3);
  field.type = static_cast<WireType>(tag & 7);
  switch (field.type) {
    case WireType::varint:
      return varint(at_, field.integer) || fail(field, "has a varint that does not end");
    case WireType::fixed64:
      return at_.little_endian(8, field.integer) || fail(field, "is cut short");
    case WireType::fixed32:
      return at_.little_endian(4, field.integer) || fail(field, "is cut short");
    case WireType::bytes: {
      std::uint64_t length = 0;
      if (!varint(at_, length)) return fail(field, "has a length that does not end");
      return at_.take(length, field.bytes) ||
             fail(field, "has " + std::to_string(length) + " bytes, and " +
                             std::to_string(at_.remaining()) + " are left");
    }
  }
  return fail(field, "has wire type " + std::to_string(tag & 7) +
                         ((tag & 7) < 5 ? " (a group), which is not read" : ", which is invalid"));
}

bool ProtobufReader::fail(const ProtobufField& field, const std::string& what) {
  problem_ = field.number == 0 ? "byte" : "field " + std::to_string(field.number) + " at byte";
  problem_ += " " + std::to_string(field.offset) + " " + what;
  return false;
}

std::string type_problem(const ProtobufField& field, const char* name, WireType type) {
  if (field.type == type) return {};
  return where(field, name) + " is " + to_string(field.type) + ", not " + to_string(type);
}

std::string append_floats(const ProtobufField& field, const char* name,
                          std::vector<float>& numbers) {
  const auto append = [&](std::uint64_t bits) {
    numbers.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  };
  if (field.type != WireType::bytes) {
    std::string problem = type_problem(field, name, WireType::fixed32);
    if (problem.empty()) append(field.integer);
    return problem;
  }
  if (field.bytes.size() % 4 != 0)
    return where(field, name) + " has " + std::to_string(field.bytes.size()) +
           " bytes of packed floats, which have 4 each";
  ByteCursor at(field.bytes);
  for (std::uint64_t bits = 0; at.little_endian(4, bits);) append(bits);
  return {};
}

std::string append_int32s(const ProtobufField& field, const char* name,
                          std::vector<std::int64_t>& numbers) {
  return append_integers(field, name, numbers, low_32_bits);
}

std::string append_int64s(const ProtobufField& field, const char* name,
                          std::vector<std::int64_t>& numbers) {
  return append_integers(field, name, numbers,
                         [](std::uint64_t number) { return static_cast<std::int64_t>(number); });
}

}  // namespace millrace
