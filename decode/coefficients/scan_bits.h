// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace millrace::coefficients {

/// Writes the bits of a scan, from each byte's highest bit on. A zero follows each byte 0xFF.
class ScanBits {
 public:
  explicit ScanBits(std::vector<std::uint8_t>& to) : to_(to) {}

  /// Makes room for the next 4,096 bits.
  void reserve() {
    constexpr std::size_t room = 4096 / 8 + 2 * sizeof held_;
    if (segment_.size() - bytes_ < room) segment_.resize(2 * segment_.size() + 64 * room);
  }
  /// Writes the lowest 0 to 32 bits of a value; its other bits are ignored.
  void put(std::uint32_t value, unsigned bits) {
    held_ |= std::uint64_t{value} << (63 - bits) << 1 >> count_;
    count_ += bits;
    const std::uint64_t bytes = __builtin_bswap64(held_);
    std::memcpy(segment_.data() + bytes_, &bytes, sizeof bytes);
    bytes_ += count_ / 8;
    held_ <<= count_ & ~7U;
    count_ %= 8;
  }
  /// Ends a segment: fills its last byte with zeros or ones.
  void end_segment(bool ones) {
    if (count_ > 0) put(ones ? 0xFF : 0, 8 - count_);
    const std::uint8_t* from = segment_.data();
    const std::uint8_t* const end = from + bytes_;
    while (from < end) {
      const void* const found = std::memchr(from, 0xFF, static_cast<std::size_t>(end - from));
      const auto* const stop = found == nullptr ? end : static_cast<const std::uint8_t*>(found) + 1;
      to_.insert(to_.end(), from, stop);
      if (found != nullptr) to_.push_back(0);
      from = stop;
    }
    bytes_ = 0;
  }
  /// Writes a marker between two segments.
  void put_marker(std::uint8_t marker) {
    to_.push_back(0xFF);
    to_.push_back(marker);
  }

 private:
  std::vector<std::uint8_t>& to_;
  /// The bytes since the last marker, without the zeros that follow 0xFF.
  std::vector<std::uint8_t> segment_;
  std::size_t bytes_ = 0;
  /// Bits that are not in whole bytes yet, from the highest bit on.
  std::uint64_t held_ = 0;
  unsigned count_ = 0;
};

/// The codes of a Huffman table by their symbols (T.81, Annex C).
struct SymbolCodes {
  /// A code times 256, plus its length; 0 for a symbol without a code.
  std::array<std::uint32_t, 256> codes{};

  /// Sets the codes from the numbers of codes of 1 to 16 bits and their symbols. Returns false if
  /// they do not make a code.
  bool set(std::span<const std::uint8_t, 16> counts, std::span<const std::uint8_t> symbols);

  /// Writes the code of a symbol, then the lowest `bits` bits of a value, at most 16. Returns false
  /// if the symbol has no code.
  bool put(unsigned symbol, std::uint32_t value, unsigned bits, ScanBits& to) const {
    const std::uint32_t code = codes[symbol & 0xFF];
    to.put(code >> 8 << bits | (value & ((1U << bits) - 1)), (code & 0xFF) + bits);
    return code != 0;
  }
  bool put(unsigned symbol, ScanBits& to) const { return put(symbol, 0, 0, to); }
};

}  // namespace millrace::coefficients
