// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace millrace::coefficients {

/// Position of a writer of bits. A copy in a local variable stays in registers. A member of an
/// object would not, since the written bytes might alias it.
struct BitCursor {
  std::uint8_t* next = nullptr;
  /// Bits that are not in whole bytes yet, from the highest bit on, and their number.
  std::uint64_t held = 0;
  unsigned count = 0;

  /// Writes the lowest `bits` bits of a value, 0 to 32. Its other bits must be 0.
  void put(std::uint32_t value, unsigned bits) {
    held |= std::uint64_t{value} << (63 - bits) << 1 >> count;
    count += bits;
    const std::uint64_t bytes = __builtin_bswap64(held);
    std::memcpy(next, &bytes, sizeof bytes);
    next += count / 8;
    held <<= count & ~7U;
    count %= 8;
  }
};

/// Writes the bits of a scan, from each byte's highest bit on. A zero follows each byte 0xFF.
class ScanBits {
 public:
  explicit ScanBits(std::vector<std::uint8_t>& to) : to_(to), segment_(64 * room) {
    at.next = segment_.data();
  }
  ScanBits(const ScanBits&) = delete;
  ScanBits& operator=(const ScanBits&) = delete;

  /// Makes room for the next 4,096 bits.
  void reserve() {
    const auto used = static_cast<std::size_t>(at.next - segment_.data());
    if (segment_.size() - used >= room) return;
    segment_.resize(2 * segment_.size());
    at.next = segment_.data() + used;
  }
  /// Ends a segment: fills its last byte with zeros or ones.
  void end_segment(bool ones) {
    if (at.count > 0) at.put(ones ? 0xFF >> at.count : 0, 8 - at.count);
    for (const std::uint8_t* from = segment_.data(); from < at.next;) {
      const void* const found = std::memchr(from, 0xFF, static_cast<std::size_t>(at.next - from));
      const std::uint8_t* const stop =
          found == nullptr ? at.next : static_cast<const std::uint8_t*>(found) + 1;
      to_.insert(to_.end(), from, stop);
      if (found != nullptr) to_.push_back(0);
      from = stop;
    }
    at.next = segment_.data();
  }
  /// Writes a marker between two segments.
  void put_marker(std::uint8_t marker) {
    to_.push_back(0xFF);
    to_.push_back(marker);
  }

  /// Position at which the next bits are written.
  BitCursor at;

 private:
  static constexpr std::size_t room = 4096 / 8 + 16;

  std::vector<std::uint8_t>& to_;
  /// The bytes since the last marker, without the zeros that follow 0xFF.
  std::vector<std::uint8_t> segment_;
};

/// The codes of a Huffman table, indexed by symbol (T.81, Annex C).
struct SymbolCodes {
  /// A code times 256, plus its length; 0 for a symbol without a code.
  std::array<std::uint32_t, 256> codes{};

  /// Sets the codes from the numbers of codes of 1 to 16 bits and their symbols. Returns false if
  /// these are not a valid code.
  bool set(std::span<const std::uint8_t, 16> counts, std::span<const std::uint8_t> symbols);

  /// Writes the code of a symbol, then the lowest `bits` bits of a value, at most 16. Returns false
  /// if the symbol has no code.
  bool put(unsigned symbol, std::uint32_t value, unsigned bits, BitCursor& to) const {
    const std::uint32_t code = codes[symbol & 0xFF];
    to.put(code >> 8 << bits | (value & ((1U << bits) - 1)), (code & 0xFF) + bits);
    return code != 0;
  }
  bool put(unsigned symbol, BitCursor& to) const { return put(symbol, 0, 0, to); }
};

}  // namespace millrace::coefficients
