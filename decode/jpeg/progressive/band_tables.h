// SPDX-License-Identifier: Apache-2.0
//
// Huffman codes of the AC scans of progressive JPEGs (ITU-T T.81, G.1.2.2 and G.1.2.3) as tables
// for many bits at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "jpeg/huffman.h"

namespace millrace::jpeg {

/// Table of a first scan, one symbol per entry:
/// - bits 0 to 7: the number of bits to take, including those of the value or the run
/// - bits 8 to 15: the distance of the coefficient's place from the one before (1 to 16). `end`
///   means an end of band, `other` a symbol that does not fit into the index
/// - bits 16 to 31: the coefficient as an int16, at its low bit; or the end of band's block count
struct FirstTable {
  static constexpr int index_bits = 11;
  static constexpr std::uint32_t end = 64;
  static constexpr std::uint32_t other = 128;

  /// Returns false if it is not a code.
  bool set(const HuffmanCode& code, int low_bit);
  /// Returns whether a coefficient of `bits` bits fits into 16 bits after the shift by the low bit.
  bool fits(int bits) const { return bits <= max_bits; }

  std::array<std::uint32_t, std::size_t{1} << index_bits> entries;
  LongCodes long_codes;
  int max_bits = 0;
};

/// Table of a refinement, one symbol per entry:
/// - bits 0 to 5: zero coefficients to skip; `other` for an end of band, or a symbol that does not
///   fit into the index
/// - bit 6: set for an end of band
/// - bits 8 to 13: the number of bits to take, including the sign or those of the run
/// - bits 16 to 30: the blocks of the end of band
/// - bit 31: set for a negative coefficient
struct RefinementTable {
  static constexpr int index_bits = 10;
  static constexpr std::uint32_t other = 63;
  static constexpr std::uint32_t end = 64 | other;

  /// Returns false if it is not a code.
  bool set(const HuffmanCode& code);

  std::array<std::uint32_t, std::size_t{1} << index_bits> entries;
  LongCodes long_codes;
};

}  // namespace millrace::jpeg
