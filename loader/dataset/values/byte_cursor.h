// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace millrace {

/// A read position in some bytes, which only moves forward. A call that needs more bytes than are
/// left returns false and changes nothing.
class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t offset() const { return at_; }
  std::size_t remaining() const { return bytes_.size() - at_; }

  bool take(std::uint64_t count, std::span<const std::byte>& taken) {
    if (count > remaining()) return false;
    taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += taken.size();
    return true;
  }
  /// Reads an unsigned number of up to 8 bytes.
  bool little_endian(std::size_t bytes, std::uint64_t& number) {
    std::span<const std::byte> taken;
    if (!take(bytes, taken)) return false;
    number = 0;
    for (std::size_t n = bytes; n-- > 0;)
      number = number << 8 | static_cast<std::uint8_t>(taken[n]);
    return true;
  }
  bool big_endian(std::size_t bytes, std::uint64_t& number) {
    std::span<const std::byte> taken;
    if (!take(bytes, taken)) return false;
    number = 0;
    for (const std::byte byte : taken) number = number << 8 | static_cast<std::uint8_t>(byte);
    return true;
  }
  /// Reads the bytes before the next '\n' and skips that '\n'.
  bool line(std::string_view& text) {
    const std::string_view all(reinterpret_cast<const char*>(bytes_.data()) + at_, remaining());
    const std::size_t end = all.find('\n');
    if (end == std::string_view::npos) return false;
    text = all.substr(0, end);
    at_ += end + 1;
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace millrace
