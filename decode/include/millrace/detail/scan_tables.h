// SPDX-License-Identifier: Apache-2.0
//
// Huffman tables of a packed scan (`CropScan`), for host code and CUDA kernels. For millrace's own
// folders; not installed.
#pragma once

#include <millrace/crop_work.h>
#include <millrace/detail/pixel_arithmetic.h>

#include <cstddef>
#include <cstdint>

namespace millrace::jpeg {

/// Look-up table of a Huffman code. An entry has the code's length in its high byte and the symbol
/// in its low byte.
struct SymbolTable {
  static constexpr unsigned index_bits = 9;
  static constexpr unsigned max_bits = 16;
  static constexpr unsigned long_lengths = max_bits - index_bits;

  /// Entries, indexed by the next `index_bits` bits. 0 = the code is longer or does not exist.
  std::uint16_t entries[1U << index_bits];
  /// For each code length above `index_bits`: `ends` has the last code of this length plus 1, and
  /// `offsets` has the number to add to a code to get the index of its symbol.
  std::int32_t ends[long_lengths];
  std::int32_t offsets[long_lengths];
  std::uint8_t symbols[256];

  /// Makes one thread's part of the table. `threads` threads, numbered from 0, make it together.
  MILLRACE_HOST_DEVICE void make(const CropScan::Code& code, unsigned thread, unsigned threads) {
    for (unsigned index = thread; index < 1U << index_bits; index += threads)
      entries[index] = entry_of(code, index);
    for (unsigned n = thread; n < 256; n += threads) symbols[n] = code.symbols[n];
    if (thread != 0) return;
    std::int32_t value = 0;
    std::int32_t number = 0;
    for (unsigned length = 1; length <= max_bits; ++length, value *= 2) {
      const std::int32_t offset = number - value;
      value += code.counts[length - 1];
      number += code.counts[length - 1];
      if (length <= index_bits) continue;
      ends[length - index_bits - 1] = value;
      offsets[length - index_bits - 1] = offset;
    }
  }
  /// Returns the entry of the code in the highest bits of `bits`; 0 for an unknown code.
  MILLRACE_HOST_DEVICE std::uint32_t find(std::uint32_t bits) const {
    const std::uint32_t entry = entries[bits >> (32 - index_bits)];
    return entry != 0 ? entry : find_long(bits);
  }

 private:
  MILLRACE_HOST_DEVICE static std::uint16_t entry_of(const CropScan::Code& code, unsigned index) {
    unsigned value = 0;
    unsigned number = 0;
    for (unsigned length = 1; length <= index_bits; ++length, value *= 2) {
      const unsigned count = code.counts[length - 1];
      const unsigned from = index >> (index_bits - length);
      if (from < value + count)
        return static_cast<std::uint16_t>(length << 8U |
                                          code.symbols[(number + from - value) & 255U]);
      value += count;
      number += count;
    }
    return 0;
  }
  MILLRACE_HOST_DEVICE std::uint32_t find_long(std::uint32_t bits) const {
    for (unsigned n = 0; n < long_lengths; ++n) {
      const unsigned length = index_bits + 1 + n;
      const auto code = static_cast<std::int32_t>(bits >> (32 - length));
      if (code < ends[n])
        return length << 8U | symbols[static_cast<std::uint32_t>(code + offsets[n]) & 255U];
    }
    return 0;
  }
};

/// The Huffman tables of a scan, and the layout of its MCUs.
struct ScanTables {
  static constexpr unsigned max_blocks = 6;

  /// Number of blocks in an MCU, and number of luminance blocks. The other blocks are Cb and Cr.
  std::uint32_t blocks;
  std::uint32_t light_blocks;
  std::uint8_t dc_codes[3];
  std::uint8_t ac_codes[3];
  SymbolTable codes[CropScan::max_codes];

  /// Makes one thread's part, as `SymbolTable::make` does.
  MILLRACE_HOST_DEVICE void make(const CropHeader& crop, const CropScan::Code* packed,
                                 unsigned thread, unsigned threads) {
    for (std::int32_t n = 0; n < crop.scan.code_count; ++n)
      codes[n].make(packed[n], thread, threads);
    if (thread != 0) return;
    light_blocks = static_cast<std::uint32_t>(crop.across * crop.down);
    blocks = light_blocks + static_cast<std::uint32_t>(crop.components) - 1;
    for (unsigned n = 0; n < 3; ++n) {
      dc_codes[n] = crop.scan.dc_codes[n];
      ac_codes[n] = crop.scan.ac_codes[n];
    }
  }
  MILLRACE_HOST_DEVICE std::uint32_t component_of(std::uint32_t block) const {
    return block < light_blocks ? 0 : block - light_blocks + 1;
  }
};

}  // namespace millrace::jpeg
