// SPDX-License-Identifier: Apache-2.0
//
// A JPEG's Huffman code (ITU-T T.81, Annex C and F.2.2.3) as tables for many bits at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace::jpeg {

/// A code as in the file: the numbers of codes of 1, 2 ... 16 bits, and their symbols.
struct HuffmanCode {
  std::array<std::uint8_t, 16> counts{};
  std::array<std::uint8_t, 256> symbols{};
};

/// The symbol of AC coefficients that means sixteen zeros.
inline constexpr int sixteen_zeros = 0xF0;

/// Returns whether a symbol of AC coefficients means a coefficient or sixteen zeros.
inline bool is_coefficient(int symbol) {
  constexpr int max_bits = 10;
  const int bits = symbol & 15;
  return symbol == sixteen_zeros || (bits > 0 && bits <= max_bits);
}

/// Calls `take(code, length, symbol)` for each code of up to `longest` bits, from the shortest one
/// on.
template <typename Take>
void for_each_code(const HuffmanCode& code, int longest, const Take& take) {
  unsigned value = 0;
  std::size_t number = 0;
  for (int length = 1; length <= longest; ++length, value <<= 1)
    for (int n = 0; n < code.counts[static_cast<std::size_t>(length - 1)]; ++n)
      take(value++, length, code.symbols[number++]);
}

/// Decodes a value of `bits` bits: the lower half of the stored values is negative (T.81, F.1.2.1).
constexpr int stored_value(unsigned stored, int bits) {
  const auto value = static_cast<int>(stored);
  return bits > 0 && value < 1 << (bits - 1) ? value - (1 << bits) + 1 : value;
}

/// Finds symbols one by one, for codes that are too long for a table.
class LongCodes {
 public:
  /// Returns false if the counts are not those of a valid code.
  bool set(const HuffmanCode& code);

  /// Returns the symbol of the code at the highest bits of `bits`, and the code's length. The
  /// length must be at least `shortest`. Returns -1 if the bits begin with an unknown code.
  int find(std::uint64_t bits, int shortest, int& length) const {
    for (length = shortest; length <= 16; ++length) {
      const auto value = static_cast<int>(bits >> (64 - length));
      const auto n = static_cast<std::size_t>(length - 1);
      if (value <= last_[n]) return symbols_[static_cast<std::uint8_t>(value + offset_[n])];
    }
    return -1;
  }

 private:
  /// For each length: the largest code (-1 if the length has no codes), and the number to add to a
  /// code to get its symbol's index.
  std::array<int, 16> last_{};
  std::array<int, 16> offset_{};
  std::array<std::uint8_t, 256> symbols_{};
};

/// Table for differences of DC coefficients. The high byte of an entry is the number of bits of the
/// difference, at most 11. The low byte is that number plus the length of the code. An entry is 0
/// if the code is too long for the table or does not exist.
struct DcTable {
  static constexpr int index_bits = 9;
  static constexpr int max_bits = 11;

  /// Returns false if `code` is invalid, or has symbols that differences of 8-bit samples do not
  /// have.
  bool set(const HuffmanCode& code);

  std::array<std::uint16_t, std::size_t{1} << index_bits> entries;
  LongCodes long_codes;
};

/// Table for AC coefficients. An entry describes one coefficient, or the end of a block:
/// - bits 0 to 7: the number of bits to take, including those of the value
/// - bits 8 to 15: the distance of its zigzag index from the one before (1 to 16). `other` is added
///   if the value does not fit into the index. The end of a block is `end`
/// - bits 16 to 31: the value, as an int16; with `other`, the value's number of bits. Sixteen zeros
///   are a coefficient of 0
/// The remaining entries are `long_code` and `unsound`. `long_code` means a code that does not fit
/// into the index or does not exist. `unsound` means a symbol that a valid scan does not have.
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

/// Table to skip AC coefficients. An entry has all symbols whose codes are complete in the index.
/// Low byte: the number of their bits, at most `max_bits`. The last symbol's value need not fit
/// into the index. High byte: how far the symbols advance the zigzag index, plus `end` if the block
/// ends with the last one. The high byte is `other` if the index has no complete symbol.
struct SkipTable {
  static constexpr int index_bits = 11;
  static constexpr int max_bits = 14;
  static constexpr unsigned end = 64;
  static constexpr unsigned other = 128;

  /// `AcTable::set` must have returned true for the code.
  void set(const HuffmanCode& code);

  std::array<std::uint16_t, std::size_t{1} << index_bits> entries;
};

}  // namespace millrace::jpeg
