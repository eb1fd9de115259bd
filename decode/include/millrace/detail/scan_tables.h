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
  /// For each code length above `index_bits`: the last code of this length plus 1, shifted to the
  /// left to 16 bits.
  std::int32_t ends[long_lengths];
  /// For the same lengths: the number to add to a code to get the index of its symbol.
  std::int32_t offsets[long_lengths];
  std::uint8_t symbols[256];

  /// Makes one thread's part of the table. `threads` threads, numbered from 0, make it together.
  MILLRACE_HOST_DEVICE void make(const CropScan::Code& code, unsigned thread, unsigned threads) {
    // As `ends` and `offsets`, but for all lengths. Unrolled loops keep them in registers.
    std::int32_t ends_of[max_bits];
    std::int32_t offsets_of[max_bits];
    std::int32_t value = 0;
    std::int32_t number = 0;
    for (unsigned n = 0; n < max_bits; ++n) {
      offsets_of[n] = number - value;
      value += code.counts[n];
      number += code.counts[n];
      ends_of[n] = value << (max_bits - 1 - n);
      value *= 2;
    }
    if (thread == 0)
      for (unsigned n = 0; n < long_lengths; ++n) {
        ends[n] = ends_of[index_bits + n];
        offsets[n] = offsets_of[index_bits + n];
      }
    for (unsigned n = thread; n < 256; n += threads) symbols[n] = code.symbols[n];
    for (unsigned index = thread; index < 1U << index_bits; index += threads) {
      // The shortest length whose end is above the code. The ends ascend.
      const auto bits = static_cast<std::int32_t>(index << (max_bits - index_bits));
      unsigned length = 0;
      std::int32_t offset = 0;
      for (unsigned n = index_bits; n-- > 0;)
        if (bits < ends_of[n]) {
          length = n + 1;
          offset = offsets_of[n];
        }
      const std::int32_t symbol =
          static_cast<std::int32_t>(index >> (index_bits - length)) + offset;
      const unsigned entry = length << 8U | code.symbols[static_cast<std::uint32_t>(symbol) & 255U];
      entries[index] = static_cast<std::uint16_t>(length == 0 ? 0 : entry);
    }
  }
  /// Returns the entry of the code in the highest bits of `bits`; 0 for an unknown code.
  MILLRACE_HOST_DEVICE std::uint32_t find(std::uint32_t bits) const {
    const std::uint32_t entry = entries[bits >> (32 - index_bits)];
    return entry != 0 ? entry : find_long(bits);
  }

 private:
  MILLRACE_HOST_DEVICE std::uint32_t find_long(std::uint32_t bits) const {
    // The ends ascend. So the number of ends up to the code tells its length.
    const auto code = static_cast<std::int32_t>(bits >> (32 - max_bits));
    std::uint32_t shorter = 0;
    for (unsigned n = 0; n < long_lengths; ++n) shorter += code >= ends[n] ? 1 : 0;
    if (shorter == long_lengths) return 0;
    const std::int32_t number = (code >> (long_lengths - 1 - shorter)) + offsets[shorter];
    return (index_bits + 1 + shorter) << 8U | symbols[static_cast<std::uint32_t>(number) & 255U];
  }
};

/// Layout of an MCU, and the codes of its components. A thread keeps it in registers.
struct McuLayout {
  /// Number of blocks in an MCU, and number of luminance blocks. The other blocks are Cb and Cr.
  std::uint32_t blocks;
  std::uint32_t light_blocks;
  /// Two bits for each component: the index of its code.
  std::uint32_t dc_codes;
  std::uint32_t ac_codes;

  MILLRACE_HOST_DEVICE std::uint32_t component_of(std::uint32_t block) const {
    return block < light_blocks ? 0 : block - light_blocks + 1;
  }
  MILLRACE_HOST_DEVICE std::uint32_t code_of(std::uint32_t component, bool is_dc) const {
    return (is_dc ? dc_codes : ac_codes) >> (2 * component) & 3U;
  }
};

/// The Huffman tables of a scan, and the layout of its MCUs.
struct ScanTables {
  static constexpr unsigned max_blocks = 6;

  McuLayout layout;
  SymbolTable codes[CropScan::max_codes];

  /// Makes one thread's part, as `SymbolTable::make` does.
  MILLRACE_HOST_DEVICE void make(const CropHeader& crop, const CropScan::Code* packed,
                                 unsigned thread, unsigned threads) {
    for (std::int32_t n = 0; n < crop.scan.code_count; ++n)
      codes[n].make(packed[n], thread, threads);
    if (thread != 0) return;
    const auto light_blocks = static_cast<std::uint32_t>(crop.across * crop.down);
    McuLayout made{.blocks = light_blocks + static_cast<std::uint32_t>(crop.components) - 1,
                   .light_blocks = light_blocks,
                   .dc_codes = 0,
                   .ac_codes = 0};
    for (unsigned n = 0; n < 3; ++n) {
      made.dc_codes |= (crop.scan.dc_codes[n] & 3U) << (2 * n);
      made.ac_codes |= (crop.scan.ac_codes[n] & 3U) << (2 * n);
    }
    layout = made;
  }
};

}  // namespace millrace::jpeg
