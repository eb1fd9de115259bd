// SPDX-License-Identifier: Apache-2.0
//
// Entropy decoding of a packed scan (`CropScan`). Scalar host code and CUDA kernels call the same
// functions, so they get the same coefficients. For millrace's own folders; not installed.
//
// The scan is untrusted. Decoding it always terminates, since each symbol takes at least one bit
// and a block has at most 64 symbols. Bits after the last word are read as 0.
#pragma once

#include <millrace/detail/scan_tables.h>

#include <cstdint>

namespace millrace::jpeg {

/// Reads a scan bit by bit. Two words hold the next bits.
class WordBits {
 public:
  MILLRACE_HOST_DEVICE WordBits(const std::uint32_t* words, std::uint32_t count, std::uint32_t bit)
      : words_(words), count_(count), next_(bit / 32), used_(bit % 32) {
    high_ = load();
    low_ = load();
  }
  /// Returns the next 32 bits.
  MILLRACE_HOST_DEVICE std::uint32_t peek() const {
    return high_ << used_ | low_ >> 1U >> (31U - used_);
  }
  /// Skips `bits` bits, at most 31.
  MILLRACE_HOST_DEVICE void consume(std::uint32_t bits) {
    used_ += bits;
    if (used_ < 32) return;
    used_ -= 32;
    high_ = low_;
    low_ = load();
  }
  /// Returns the offset of the next bit, counted from the scan's first bit.
  MILLRACE_HOST_DEVICE std::uint32_t position() const { return (next_ - 2) * 32 + used_; }

 private:
  MILLRACE_HOST_DEVICE std::uint32_t load() {
    const std::uint32_t word = next_ < count_ ? words_[next_] : 0;
    ++next_;
    return word << 24U | (word & 0xFF00U) << 8U | (word >> 8U & 0xFF00U) | word >> 24U;
  }

  const std::uint32_t* words_;
  std::uint32_t count_;
  std::uint32_t next_;
  std::uint32_t high_ = 0;
  std::uint32_t low_ = 0;
  /// Number of bits of `high_` that are consumed.
  std::uint32_t used_;
};

/// Decodes a DC difference or AC coefficient from the first `size` bits, at most 15 (ITU-T T.81,
/// F.1.2.1).
MILLRACE_HOST_DEVICE inline std::int32_t extended(std::uint32_t bits, std::uint32_t size) {
  const auto stored = static_cast<std::int32_t>(bits >> 1U >> (31U - size));
  const std::int32_t below = bits >> 31U == 0 ? (1 << size) - 1 : 0;
  return stored - below;
}

/// Decodes an MCU. `predictors` has the DC coefficients before the MCU; the call updates them. It
/// calls `put(block, component, zigzag_index, value)` for each stored coefficient. Returns false
/// for invalid data. A single loop over the symbols of all blocks lets the threads of a warp
/// converge after each symbol instead of each block.
template <typename Put>
MILLRACE_HOST_DEVICE bool decode_mcu(const ScanTables& tables, WordBits& bits,
                                     std::uint16_t* predictors, const Put& put) {
  constexpr std::uint32_t values = 64;
  constexpr std::uint32_t sixteen_zeros_symbol = 0xF0;
  constexpr std::uint32_t max_size = 10;
  std::uint32_t block = 0;
  std::uint32_t place = 0;
  while (block < tables.blocks) {
    const std::uint32_t component = tables.component_of(block);
    const bool is_dc = place == 0;
    const std::uint32_t ahead = bits.peek();
    const std::uint32_t entry =
        tables.codes[is_dc ? tables.dc_codes[component] : tables.ac_codes[component]].find(ahead);
    if (entry == 0) return false;
    const std::uint32_t length = entry >> 8U;
    const std::uint32_t symbol = entry & 0xFFU;
    const std::uint32_t size = symbol & 15U;
    std::int32_t value = extended(ahead << length, size);
    bits.consume(length + size);
    if (!is_dc && symbol == 0) {
      place = values;  // the block's end
    } else {
      if (is_dc) {
        value += predictors[component];
        predictors[component] = static_cast<std::uint16_t>(value);
      } else {
        place += symbol >> 4U;
        if (place >= values || size > max_size || (size == 0 && symbol != sixteen_zeros_symbol))
          return false;
      }
      put(block, component, place, static_cast<std::int16_t>(value));
      ++place;
    }
    if (place == values) {
      place = 0;
      ++block;
    }
  }
  return true;
}

/// Returns whether a decoded segment ends at the position and with the predictors that it must
/// have. If it does not, a decoder that comes from the MCUs before might find other coefficients.
MILLRACE_HOST_DEVICE inline bool ends_right(const CropScan::Segment& segment, const WordBits& bits,
                                            const std::uint16_t* predictors) {
  using End = CropScan::Segment::End;
  const std::uint32_t left = segment.end_bit - bits.position();
  if (segment.end == End::at_marker) return left < 8;
  if (segment.end == End::unknown) return static_cast<std::int32_t>(left) >= 0;
  bool same = left == 0;
  for (unsigned n = 0; n < 3; ++n) same = same && predictors[n] == segment.end_predictors[n];
  return same;
}

}  // namespace millrace::jpeg
