// SPDX-License-Identifier: Apache-2.0
//
// The numbers of packed indices: little-endian bytes, Rice codes and checksums.
#pragma once

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace millrace::jpeg {

inline void put_bytes(std::uint64_t number, std::size_t bytes, std::byte* to) {
  for (std::size_t n = 0; n < bytes; ++n) to[n] = static_cast<std::byte>(number >> 8 * n);
}

inline std::uint64_t take_bytes(const std::byte* from, std::size_t bytes) {
  std::uint64_t number = 0;
  for (std::size_t n = 0; n < bytes; ++n)
    number |= std::to_integer<std::uint64_t>(from[n]) << 8 * n;
  return number;
}

/// The last bytes of a packed index: the low half of the XXH3-64 of all bytes before.
inline constexpr std::size_t checksum_bytes = 4;

inline std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size()) & 0xFFFFFFFF;
}

inline void append_checksum(std::vector<std::byte>& packed) {
  const std::uint64_t checksum = checksum_of(packed);
  packed.resize(packed.size() + checksum_bytes);
  put_bytes(checksum, checksum_bytes, packed.data() + packed.size() - checksum_bytes);
}

/// Returns whether the last bytes are the checksum of those before.
inline bool has_checksum(std::span<const std::byte> packed) {
  if (packed.size() < checksum_bytes) return false;
  const std::span<const std::byte> body = packed.first(packed.size() - checksum_bytes);
  return take_bytes(body.data() + body.size(), checksum_bytes) == checksum_of(body);
}

/// If a number's Rice code would begin with this many ones or more, it is replaced: by this many
/// ones and the plain number.
inline constexpr unsigned max_rice_ones = 24;
inline constexpr unsigned plain_rice_bits = 32;
/// The most bits that a number takes.
inline constexpr unsigned max_rice_bits = max_rice_ones + plain_rice_bits;

/// A number as a Rice code. If the code has too many ones, only `is_plain` is valid.
struct RiceCode {
  RiceCode(std::uint32_t number, unsigned parameter) {
    const std::uint32_t ones = number >> parameter;
    is_plain = ones >= max_rice_ones;
    bits = ones + 1 + parameter;
    const std::uint64_t prefix = ((std::uint64_t{1} << (ones & 31)) - 1) << 1;
    value = prefix << parameter | (number & ((1U << parameter) - 1));
  }

  bool is_plain = false;
  std::uint32_t bits = 0;
  std::uint64_t value = 0;
};

/// Writes bits, from each byte's highest bit on.
class RiceWriter {
 public:
  /// The memory must have 8 bytes more than are written.
  explicit RiceWriter(std::byte* to) : to_(to) {}

  /// Writes each number with its own parameter.
  template <std::size_t count>
  void put_numbers(const std::array<std::uint32_t, count>& numbers,
                   const std::array<unsigned, count>& parameters) {
    std::uint64_t all = 0;
    std::uint32_t bits = 0;
    bool is_plain = false;
    for (std::size_t n = 0; n < count; ++n) {
      const RiceCode code(numbers[n], parameters[n]);
      all = all << (code.bits & 63) | code.value;
      bits += code.bits;
      is_plain = is_plain || code.is_plain;
    }
    if (!is_plain && bits <= max_at_once) [[likely]]
      return put(all, bits);
    for (std::size_t n = 0; n < count; ++n) put_number(numbers[n], parameters[n]);
  }
  void put_number(std::uint32_t number, unsigned parameter) {
    const RiceCode code(number, parameter);
    if (!code.is_plain) return put(code.value, code.bits);
    put((std::uint64_t{1} << max_rice_ones) - 1, max_rice_ones);
    put(number, plain_rice_bits);
  }
  /// Writes 1 to 56 bits.
  void put(std::uint64_t value, unsigned bits) {
    held_ |= value << (64 - bits) >> count_;
    count_ += bits;
    const std::uint64_t bytes = __builtin_bswap64(held_);
    std::memcpy(to_, &bytes, sizeof bytes);
    to_ += count_ / 8;
    held_ <<= count_ / 8 * 8;
    count_ %= 8;
  }
  /// Returns the address after the last byte, of which some bits may be unused.
  std::byte* end() const { return to_ + (count_ > 0 ? 1 : 0); }

 private:
  static constexpr std::uint32_t max_at_once = 56;

  std::byte* to_;
  std::uint64_t held_ = 0;
  /// Bits of `held_` that are not in whole bytes yet.
  unsigned count_ = 0;
};

/// Reads what `RiceWriter` has written, or any other bytes.
class RiceReader {
 public:
  explicit RiceReader(std::span<const std::byte> from) : from_(from) {}

  std::uint32_t take_number(unsigned parameter) {
    fill();
    const auto ones = static_cast<unsigned>(std::countl_one(held_));
    if (ones >= max_rice_ones) {
      held_ <<= max_rice_ones;
      count_ -= max_rice_ones;
      fill();
      return take(plain_rice_bits);
    }
    held_ <<= ones + 1;
    count_ -= ones + 1;
    return ones << parameter | take(parameter);
  }
  /// Takes up to 32 bits.
  std::uint32_t take_bits(unsigned bits) {
    fill();
    return take(bits);
  }
  /// Returns whether more bits were read than exist. Bits past the end are ones.
  bool is_past_end() const { return past_end_ > count_; }

 private:
  std::uint32_t take(unsigned bits) {
    const auto value = static_cast<std::uint32_t>(held_ >> 1 >> (63 - bits));
    held_ <<= bits;
    count_ -= bits;
    return value;
  }
  /// Fills `held_` to at least 56 bits.
  void fill() {
    if (from_.size() - read_ >= sizeof held_) [[likely]] {
      std::uint64_t next;
      std::memcpy(&next, from_.data() + read_, sizeof next);
      held_ |= __builtin_bswap64(next) >> count_;
      read_ += (63 - count_) >> 3;
      count_ |= 56;
      return;
    }
    for (; count_ <= 56; count_ += 8) {
      const bool is_there = read_ < from_.size();
      held_ |= (is_there ? std::to_integer<std::uint64_t>(from_[read_++]) : 0xFF) << (56 - count_);
      if (!is_there) past_end_ += 8;
    }
  }

  std::span<const std::byte> from_;
  std::size_t read_ = 0;
  std::uint64_t held_ = 0;
  unsigned count_ = 0;
  /// Bits that were added past the end.
  unsigned past_end_ = 0;
};

/// Returns a nearly optimal Rice parameter, at most `most`, for numbers with the given mean: the
/// bit width of ln 2 times the mean.
inline unsigned parameter_for(std::uint64_t mean, unsigned most) {
  return std::min(static_cast<unsigned>(std::bit_width(mean * 71 / 102)), most);
}

}  // namespace millrace::jpeg
