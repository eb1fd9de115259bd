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
/// - bits 8 to 15: the distance of the coefficient's place from the one before (1 to 16).
///   `end_of_band` means an end of band, `other` a symbol that does not fit into the index
/// - bits 16 to 31: the coefficient as an int16, shifted to its low bit; or the number of blocks in
///   the end of band's run
struct FirstTable {
  static constexpr int index_bits = 11;
  static constexpr std::uint32_t end_of_band = 64;
  static constexpr std::uint32_t other = 128;

  /// Returns false if `code` is not a valid Huffman code.
  bool set(const HuffmanCode& code, int low_bit);
  /// Returns whether a coefficient may have `bits` bits. It has at most 10, as 8-bit samples allow,
  /// and must fit into 16 bits after the shift by the low bit.
  bool allows(int bits) const { return bits <= max_bits; }

  std::array<std::uint32_t, std::size_t{1} << index_bits> entries;
  LongCodes long_codes;
  int max_bits = 0;
};

/// Table of a refinement, one symbol per entry:
/// - bits 0 to 5: zero coefficients to skip; `other` for an end of band, or a symbol that does not
///   fit into the index
/// - bit 6: set for an end of band
/// - bits 8 to 13: the number of bits to take, including the sign or those of the run
/// - bits 16 to 30: the number of blocks in the end of band's run
/// - bit 31: set for a negative coefficient
struct RefinementTable {
  static constexpr int index_bits = 10;
  static constexpr std::uint32_t other = 63;
  /// Bits 0 to 6 of an entry for an end of band.
  static constexpr std::uint32_t end_of_band_bits = 64 | other;

  /// Returns false if `code` is not a valid Huffman code.
  bool set(const HuffmanCode& code);

  std::array<std::uint32_t, std::size_t{1} << index_bits> entries;
  LongCodes long_codes;
};

}  // namespace millrace::jpeg
