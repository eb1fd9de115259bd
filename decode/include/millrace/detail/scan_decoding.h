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

/// Returns the upper 32 bits of `high` and `low` after a shift to the left by `bits` % 32.
MILLRACE_HOST_DEVICE inline std::uint32_t shifted_left(std::uint32_t high, std::uint32_t low,
                                                       std::uint32_t bits) {
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32U | low) << bits % 32 >> 32U);
}

/// Reads a scan bit by bit. Two words hold the next bits. The third one is loaded ahead, since a
/// load takes a GPU as long as a symbol.
class WordBits {
 public:
  MILLRACE_HOST_DEVICE WordBits(const std::uint32_t* words, std::uint32_t count, std::uint32_t bit)
      : words_(words), count_(count), position_(bit) {
    high_ = big_endian(load(0));
    low_ = big_endian(load(1));
    ahead_ = load(2);
  }
  /// Returns the next 32 bits.
  MILLRACE_HOST_DEVICE std::uint32_t peek() const { return shifted_left(high_, low_, position_); }
  /// Skips `bits` bits, at most 31.
  MILLRACE_HOST_DEVICE void consume(std::uint32_t bits) {
    const std::uint32_t before = position_;
    position_ += bits;
    // Selected values in place of branches: see `decode_mcu`.
    const bool is_next = (before ^ position_) >= 32;
    high_ = is_next ? low_ : high_;
    low_ = is_next ? big_endian(ahead_) : low_;
    const std::uint32_t number = position_ / 32 + 2;
    if (is_next) ahead_ = 0;
    if (is_next & (number < count_)) ahead_ = words_[number];
  }
  /// Returns the offset of the next bit, counted from the scan's first bit.
  MILLRACE_HOST_DEVICE std::uint32_t position() const { return position_; }

 private:
  /// Converts a word, whose bytes are in the order of the file.
  MILLRACE_HOST_DEVICE static std::uint32_t big_endian(std::uint32_t word) {
    return word << 24U | (word & 0xFF00U) << 8U | (word >> 8U & 0xFF00U) | word >> 24U;
  }
  /// Returns the word at a distance from that of the next bit, as it is in memory.
  MILLRACE_HOST_DEVICE std::uint32_t load(std::uint32_t distance) const {
    const std::uint32_t number = position_ / 32 + distance;
    return number < count_ ? words_[number] : 0;
  }

  const std::uint32_t* words_;
  std::uint32_t count_;
  /// Offset of the next bit, which is in `high_`.
  std::uint32_t position_;
  std::uint32_t high_ = 0;
  std::uint32_t low_ = 0;
  /// The word after `low_`, as it is in memory.
  std::uint32_t ahead_ = 0;
};

/// Decodes a DC difference or AC coefficient from the first `size` bits, at most 15 (ITU-T T.81,
/// F.1.2.1).
MILLRACE_HOST_DEVICE inline std::int32_t extended(std::uint32_t bits, std::uint32_t size) {
  // All ones if the first bit is 0.
  const auto ones = static_cast<std::uint32_t>(static_cast<std::int32_t>(~bits) >> 31U);
  return static_cast<std::int32_t>(shifted_left(ones, bits, size) - ones);
}

/// Decodes an MCU. `predictors` has the DC coefficients before the MCU; the call updates them. It
/// calls `put(is_stored, block, component, zigzag_index, value)` for each symbol. `is_stored` is
/// false for the end of a block and for invalid data: the value is to be ignored, and the indices
/// are in range. Returns false for invalid data.
///
/// A single loop over the symbols of all blocks lets the threads of a warp converge after each
/// symbol instead of each block. It selects values (`?:`, `&`, `|`) in place of branches, where the
/// threads would diverge.
template <typename Put>
MILLRACE_HOST_DEVICE bool decode_mcu(const ScanTables& tables, WordBits& bits,
                                     std::uint16_t* predictors, const Put& put) {
  constexpr std::uint32_t last_place = 63;
  constexpr std::uint32_t sixteen_zeros_symbol = 0xF0;
  constexpr std::uint32_t max_size = 10;
  constexpr std::uint32_t invalid_block = UINT32_MAX;
  const McuLayout layout = tables.layout;
  std::uint32_t block = 0;
  std::uint32_t place = 0;
  while (block < layout.blocks) {
    const std::uint32_t component = layout.component_of(block);
    const std::uint32_t predictor = predictors[component];
    const bool is_dc = place == 0;
    const std::uint32_t ahead = bits.peek();
    const std::uint32_t entry = tables.codes[layout.code_of(component, is_dc)].find(ahead);
    const std::uint32_t length = entry >> 8U;
    const std::uint32_t symbol = entry & 0xFFU;
    const std::uint32_t size = symbol & 15U;
    bits.consume(length + size);
    const auto stored = static_cast<std::uint32_t>(extended(ahead << length, size));
    const auto value = static_cast<std::uint16_t>(stored + (is_dc ? predictor : 0));
    if (is_dc) predictors[component] = value;
    place += is_dc ? 0 : symbol >> 4U;
    const bool is_end = !is_dc & (symbol == 0);
    const bool is_coefficient = (place <= last_place) & (size <= max_size) &
                                ((size != 0) | (symbol == sixteen_zeros_symbol));
    const bool is_valid = (entry != 0) & (is_dc | is_end | is_coefficient);
    put(is_valid & !is_end, block, component, place & last_place, static_cast<std::int16_t>(value));
    const bool ends_block = is_end | (place == last_place);
    place = ends_block ? 0 : place + 1;
    block += ends_block ? 1 : 0;
    block = is_valid ? block : invalid_block;
  }
  return block != invalid_block;
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
