// SPDX-License-Identifier: Apache-2.0
#include "jpeg/huffman.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace millrace::jpeg {

bool LongCodes::set(const HuffmanCode& code) {
  int value = 0;
  int number = 0;
  for (std::size_t n = 0; n < 16; ++n) {
    const int count = code.counts[n];
    offset_[n] = number - value;
    value += count;
    number += count;
    last_[n] = count > 0 ? value - 1 : -1;
    // A code of only ones is not allowed (T.81, Annex C); libjpeg refuses such a table.
    if (number > 256 || value >= 2 << n) return false;
    value <<= 1;
  }
  symbols_ = code.symbols;
  return true;
}

bool DcTable::set(const HuffmanCode& code) {
  if (!long_codes.set(code)) return false;
  entries.fill(0);
  bool fits = true;
  for_each_code(code, 16, [&](unsigned value, int length, int symbol) {
    fits = fits && symbol <= max_bits;
    if (fits && length <= index_bits)
      std::fill_n(entries.data() + (value << (index_bits - length)), 1 << (index_bits - length),
                  static_cast<std::uint16_t>(symbol << 8 | (length + symbol)));
  });
  return fits;
}

bool AcTable::set(const HuffmanCode& code) {
  if (!long_codes.set(code)) return false;
  entries.fill(long_code);
  for_each_code(code, index_bits, [&](unsigned value, int length, int symbol) {
    const int bits = symbol & 15;
    const int free = index_bits - length;
    std::uint32_t* entry = entries.data() + (value << free);
    if (symbol == 0) {
      std::fill_n(entry, 1 << free, end << 8 | static_cast<std::uint32_t>(length));
      return;
    }
    if (!is_coefficient(symbol)) {
      std::fill_n(entry, 1 << free, unsound);
      return;
    }
    const auto advance = static_cast<std::uint32_t>((symbol >> 4) + 1);
    if (bits > free) {
      std::fill_n(entry, 1 << free,
                  static_cast<std::uint32_t>(bits) << 16 | (other + advance) << 8 |
                      static_cast<std::uint32_t>(length + bits));
      return;
    }
    for (unsigned stored = 0; stored < 1U << bits; ++stored, entry += 1 << (free - bits))
      std::fill_n(entry, 1 << (free - bits),
                  static_cast<std::uint32_t>(stored_value(stored, bits)) << 16 | advance << 8 |
                      static_cast<std::uint32_t>(length + bits));
  });
  return true;
}

void SkipTable::set(const HuffmanCode& code) {
  // Tables with an index of 0, 1 ... bits, one after the other. The symbols after a symbol are
  // looked up in the table for the number of bits that the symbol leaves.
  std::array<std::uint16_t, std::size_t{2} << index_bits> all;
  const auto table = [&](int bits) { return all.data() + (std::size_t{1} << bits); };
  constexpr std::uint16_t nothing = 0;
  int fewest = index_bits;
  for_each_code(code, index_bits, [&](unsigned, int length, int symbol) {
    if (is_coefficient(symbol)) fewest = std::min(fewest, length + (symbol & 15));
  });
  *table(0) = nothing;
  for (int bits = 1; bits <= index_bits; ++bits) {
    if (bits > index_bits - fewest && bits < index_bits) continue;  // no symbol leaves so many bits
    std::uint16_t* const made = table(bits);
    // An index without a complete code has no symbols.
    std::fill_n(made, std::size_t{1} << bits, nothing);
    for_each_code(code, bits, [&](unsigned value, int length, int symbol) {
      const int value_bits = symbol & 15;
      const int taken = length + value_bits;
      const int free = bits - length;
      std::uint16_t* entry = made + (value << free);
      const std::size_t entries_of_code = std::size_t{1} << free;
      const bool ends = symbol == 0;
      if (!(ends || is_coefficient(symbol)) || taken > max_bits) return;
      const unsigned advance = ends ? end : static_cast<unsigned>(symbol >> 4) + 1;
      const auto one = static_cast<std::uint16_t>(advance << 8 | static_cast<unsigned>(taken));
      const int left = bits - taken;
      if (ends || left <= 0) {
        std::fill_n(entry, entries_of_code, one);
        return;
      }
      // These entries repeat for each value of the symbol.
      const std::uint16_t* next = table(left);
      const std::size_t count = std::size_t{1} << left;
      for (std::size_t n = 0; n < count; ++n) {
        const auto sum = static_cast<std::uint16_t>(one + next[n]);
        const bool fits = (sum & 0xFF) <= max_bits && advance + (next[n] >> 8) % end < end;
        entry[n] = fits ? sum : one;
      }
      for (std::size_t done = count; done < entries_of_code; done += count)
        std::memcpy(entry + done, entry, count * sizeof *entry);
    });
  }
  std::ranges::transform(std::span(table(index_bits), entries.size()), entries.begin(),
                         [](std::uint16_t entry) {
                           return entry == nothing ? static_cast<std::uint16_t>(other << 8) : entry;
                         });
}

}  // namespace millrace::jpeg
