// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::coefficients {

/// Writes the bits of a scan, from each byte's highest bit on. A zero follows each byte 0xFF.
class ScanBits {
 public:
  explicit ScanBits(std::vector<std::uint8_t>& to) : to_(to) {}

  /// Writes the lowest 0 to 32 bits of a value; its other bits are ignored.
  void put(std::uint32_t value, unsigned bits) {
    held_ = held_ << bits | (value & ((std::uint64_t{1} << bits) - 1));
    for (count_ += bits; count_ >= 8;) {
      count_ -= 8;
      const auto byte = static_cast<std::uint8_t>(held_ >> count_);
      to_.push_back(byte);
      if (byte == 0xFF) to_.push_back(0);
    }
  }
  /// Fills the last byte with zeros or ones.
  void fill_byte(bool ones) {
    if (count_ > 0) put(ones ? 0xFF : 0, 8 - count_);
  }
  /// Writes a marker, between whole bytes.
  void put_marker(std::uint8_t marker) {
    to_.push_back(0xFF);
    to_.push_back(marker);
  }

 private:
  std::vector<std::uint8_t>& to_;
  std::uint64_t held_ = 0;
  unsigned count_ = 0;
};

/// The codes of a Huffman table by their symbols (T.81, Annex C). A symbol without a code has the
/// length 0.
struct SymbolCodes {
  std::array<std::uint16_t, 256> codes{};
  std::array<std::uint8_t, 256> lengths{};

  /// Sets the codes from the numbers of codes of 1 to 16 bits and their symbols. Returns false if
  /// they do not make a code.
  bool set(std::span<const std::uint8_t, 16> counts, std::span<const std::uint8_t> symbols);

  /// Writes the code of a symbol. Returns false if it has none.
  bool put(unsigned symbol, ScanBits& bits) const {
    const unsigned length = lengths[symbol & 0xFF];
    bits.put(codes[symbol & 0xFF], length);
    return length > 0;
  }
};

}  // namespace millrace::coefficients
