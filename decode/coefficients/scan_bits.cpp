// SPDX-License-Identifier: Apache-2.0
#include "coefficients/scan_bits.h"

namespace millrace::coefficients {

bool SymbolCodes::set(std::span<const std::uint8_t, 16> counts,
                      std::span<const std::uint8_t> symbols) {
  *this = {};
  std::uint32_t code = 0;
  std::size_t next = 0;
  for (unsigned length = 1; length <= counts.size(); ++length, code <<= 1) {
    for (unsigned n = 0; n < counts[length - 1]; ++n, ++code, ++next) {
      if (next >= symbols.size() || code >> length != 0) return false;
      codes[symbols[next]] = code << 8 | length;
    }
  }
  return true;
}

}  // namespace millrace::coefficients
