// SPDX-License-Identifier: Apache-2.0
//
// Huffman's code of a JPEG (ITU-T T.81, Annex C and F.2.2.3) as tables for many bits at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace::jpeg {

/// A code as the file has it: how many codes there are of 1, 2 ... 16 bits, and their symbols.
struct HuffmanCode {
  std::array<std::uint8_t, 16> counts{};
  std::array<std::uint8_t, 256> symbols{};
};

/// The symbol of AC coefficients that stands for as many zeros.
inline constexpr int sixteen_zeros = 0xF0;

/// Whether a symbol of AC coefficients stands for one, or for sixteen zeros.
inline bool is_coefficient(int symbol) {
  constexpr int most_bits = 10;
  const int bits = symbol & 15;
  return symbol == sixteen_zeros || (bits > 0 && bits <= most_bits);
}

/// Finds symbols one by one, of codes that are too long for a table.
class LongCodes {
 public:
  /// False if the counts make no code.
  bool set(const HuffmanCode& code);

  /// The symbol that the bits, from the highest on, begin with, and its code's length, which is at
  /// least `shortest`; -1 if no code begins so.
  int find(std::uint64_t bits, int shortest, int& length) const {
    for (length = shortest; length <= 16; ++length) {
      const auto value = static_cast<int>(bits >> (64 - length));
      const auto n = static_cast<std::size_t>(length - 1);
      if (value <= last_[n]) return symbols_[static_cast<std::uint8_t>(value + offset_[n])];
    }
    return -1;
  }

 private:
  /// Of each length: the largest code (-1: there is none), and what makes a code a symbol's number.
  std::array<int, 16> last_{};
  std::array<int, 16> offset_{};
  std::array<std::uint8_t, 256> symbols_{};
};

/// Differences of DC coefficients. An entry has the number of bits of the difference, at most 11,
/// in its high byte, and the length of its code and these in its low byte; 0 if the code is too
/// long, or there is none.
struct DcTable {
  static constexpr int index_bits = 9;
  static constexpr int most_bits = 11;

  /// False if it is no code, or none of differences of 8-bit samples.
  bool set(const HuffmanCode& code);

  std::array<std::uint16_t, std::size_t{1} << index_bits> entries;
  LongCodes long_codes;
};

/// AC coefficients, one an entry:
/// - bits 0 to 7: how many bits it takes, its value's among them;
/// - bits 8 to 15: how far its place is behind the one before (1 to 16), and `other` in addition if
///   the value does not fit into the index; or `end`;
/// - bits 16 to 31: its value, as an int16; in an `other`, how many bits that has. Sixteen zeros
///   are a coefficient of 0.
/// The rest are `long_code`, for one that does not fit into the index, or none at all, and
/// `unsound`, for symbols that no sound scan has.
struct AcTable {
  static constexpr int index_bits = 11;
  static constexpr std::uint32_t end = 64;
  static constexpr std::uint32_t other = 128;
  static constexpr std::uint32_t long_code = other << 8;
  static constexpr std::uint32_t unsound = 1U << 16 | other << 8;

  bool set(const HuffmanCode& code);

  std::array<std::uint32_t, std::size_t{1} << index_bits> entries;
  LongCodes long_codes;
};

/// AC coefficients that are passed over: as many symbols an entry as the index has whole codes of.
/// Low byte: how many bits they take, at most `most_bits`; the last one's value need not fit into
/// the index. High byte: how far the last one's place is behind the place before the first; with
/// `end` added if the block ends with it; or `other` if there is no entry.
struct SkipTable {
  static constexpr int index_bits = 11;
  static constexpr int most_bits = 14;
  static constexpr unsigned end = 64;
  static constexpr unsigned other = 128;

  /// The code must be one that `AcTable::set` has taken.
  void set(const HuffmanCode& code);

  std::array<std::uint16_t, std::size_t{1} << index_bits> entries;
};

}  // namespace millrace::jpeg
