// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::testing {

// Messages of protobuf, written by hand: https://protobuf.dev/programming-guides/encoding/

inline std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes + static_cast<char>(number);
}

inline std::string little_endian(std::uint64_t number, std::size_t size) {
  std::string bytes;
  for (std::size_t n = 0; n < size; ++n) bytes += static_cast<char>(number >> (8 * n) & 0xff);
  return bytes;
}

inline std::string tag(std::uint32_t field, unsigned wire_type) {
  return varint(std::uint64_t{field} << 3 | wire_type);
}

/// A negative number takes ten bytes, as protobuf writes it.
inline std::string integer_field(std::uint32_t field, std::int64_t number) {
  return tag(field, 0) + varint(static_cast<std::uint64_t>(number));
}

inline std::string bytes_field(std::uint32_t field, std::string_view bytes) {
  return tag(field, 2) + varint(bytes.size()) + std::string(bytes);
}

inline std::string float_bytes(float number) {
  return little_endian(std::bit_cast<std::uint32_t>(number), 4);
}

inline std::string float_field(std::uint32_t field, float number) {
  return tag(field, 5) + float_bytes(number);
}

}  // namespace millrace::testing
