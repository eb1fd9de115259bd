// SPDX-License-Identifier: Apache-2.0
#include "jpeg/progressive/band_tables.h"

#include <algorithm>

namespace millrace::jpeg {
namespace {

/// Fills the entries of an end-of-band code, whose run has `run_bits` bits. `entry` is the value
/// for a run of 0 blocks.
void fill_runs(std::uint32_t* to, int free, int run_bits, std::uint32_t entry) {
  if (run_bits > free) return;
  const int same = 1 << (free - run_bits);
  for (std::uint32_t run = 1U << run_bits; run < 2U << run_bits; ++run, to += same)
    std::fill_n(to, same, entry | run << 16);
}

}  // namespace

bool FirstTable::set(const HuffmanCode& code, int low_bit) {
  if (!long_codes.set(code)) return false;
  constexpr int bits_of_8_bit_samples = 10;
  constexpr int bits_of_value = 15;
  max_bits = std::min(bits_of_8_bit_samples, bits_of_value - low_bit);
  entries.fill(other << 8);
  for_each_code(code, index_bits, [&](unsigned value, int length, int symbol) {
    const int high = symbol >> 4;
    const int bits = symbol & 15;
    const int free = index_bits - length;
    std::uint32_t* entry = entries.data() + (value << free);
    if (bits == 0 && high < 15) {
      fill_runs(entry, free, high, end_of_band << 8 | static_cast<std::uint32_t>(length + high));
      return;
    }
    if (bits == 0 || bits > free || !allows(bits)) return;
    const std::uint32_t rest =
        static_cast<std::uint32_t>(high + 1) << 8 | static_cast<std::uint32_t>(length + bits);
    const int same = 1 << (free - bits);
    for (unsigned stored = 0; stored < 1U << bits; ++stored, entry += same)
      std::fill_n(entry, same,
                  static_cast<std::uint32_t>(stored_value(stored, bits)) << (16 + low_bit) | rest);
  });
  return true;
}

bool RefinementTable::set(const HuffmanCode& code) {
  if (!long_codes.set(code)) return false;
  entries.fill(other);
  for_each_code(code, index_bits, [&](unsigned value, int length, int symbol) {
    const int high = symbol >> 4;
    const int bits = symbol & 15;
    const int free = index_bits - length;
    std::uint32_t* const entry = entries.data() + (value << free);
    if (bits == 0 && high < 15) {
      fill_runs(entry, free, high,
                end_of_band_bits | static_cast<std::uint32_t>(length + high) << 8);
    } else if (bits == 1 && free > 0) {
      const std::uint32_t one =
          static_cast<std::uint32_t>(length + 1) << 8 | static_cast<std::uint32_t>(high);
      const int half = 1 << (free - 1);
      std::fill_n(entry, half, one | 1U << 31);
      std::fill_n(entry + half, half, one);
    }
  });
  return true;
}

}  // namespace millrace::jpeg
