// SPDX-License-Identifier: Apache-2.0
//
// Refinements of AC coefficients (ITU-T T.81, G.1.2.3). Included once for each instruction set.
#if defined(MILLRACE_JPEG_REFINEMENT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_JPEG_REFINEMENT_INL_H
#undef MILLRACE_JPEG_REFINEMENT_INL_H
#else
#define MILLRACE_JPEG_REFINEMENT_INL_H
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstdint>

#include "jpeg/blocks-inl.h"
#include "jpeg/progressive/scan_loops.h"

// Here only the targets from AVX2 on have vectors of 32 bytes. They also have BMI2.
#undef MILLRACE_JPEG_HAS_PDEP
#if HWY_ARCH_X86_64 && HWY_CAP_GE256 && !defined(HWY_DISABLE_BMI2_FMA)
#define MILLRACE_JPEG_HAS_PDEP 1
#include <immintrin.h>
#else
#define MILLRACE_JPEG_HAS_PDEP 0
#endif

HWY_BEFORE_NAMESPACE();
namespace millrace::jpeg {
namespace HWY_NAMESPACE {
namespace {

/// The mask bit of a block's first coefficient.
inline constexpr std::uint64_t first_bit = std::uint64_t{1} << 63;

HWY_INLINE std::uint32_t take_bits(ScanBits& bits, std::uint32_t count) {
  const auto value = static_cast<std::uint32_t>(bits.buffer >> 1 >> (63 - count));
  consume(bits, count);
  return value;
}

/// The zero coefficients of a block after the last decoded symbol, from the highest bit on.
class ZerosByLoop {
 public:
  HWY_INLINE explicit ZerosByLoop(std::uint64_t zeros) : left_(zeros) {}
  /// Returns the bit of the zero that follows the next `skipped` zeros, or 0 after the last zero.
  HWY_INLINE std::uint64_t after(std::uint32_t skipped) const {
    std::uint64_t left = left_;
    for (; skipped > 0 && left != 0; --skipped) left ^= std::bit_floor(left);
    return std::bit_floor(left);
  }
  /// Drops the zeros up to one that `after` has returned.
  HWY_INLINE void pass(std::uint32_t, std::uint64_t bit) { left_ &= bit - 1; }
  /// Moves the lowest bits to the positions of a mask's bits, as the instruction pdep does.
  static HWY_INLINE std::uint64_t spread(std::uint64_t bits, std::uint64_t mask) {
    std::uint64_t spread = 0;
    for (; bits != 0; bits >>= 1, mask &= mask - 1) spread |= mask & (0 - mask) & (0 - (bits & 1));
    return spread;
  }
  /// Returns the index of the only bit that is set.
  static HWY_INLINE std::uint32_t place_of(std::uint64_t bit) {
    return static_cast<std::uint32_t>(std::countr_zero(bit));
  }

 private:
  std::uint64_t left_;
};

#if MILLRACE_JPEG_HAS_PDEP
/// Does the same without loops.
class ZerosByPdep {
 public:
  HWY_INLINE explicit ZerosByPdep(std::uint64_t zeros)
      : zeros_(zeros), next_((std::uint64_t{1} << std::popcount(zeros)) >> 1) {}
  HWY_INLINE std::uint64_t after(std::uint32_t skipped) const {
    return _pdep_u64(next_ >> skipped, zeros_);
  }
  HWY_INLINE void pass(std::uint32_t skipped, std::uint64_t) { next_ = next_ >> skipped >> 1; }
  static HWY_INLINE std::uint64_t spread(std::uint64_t bits, std::uint64_t mask) {
    return _pdep_u64(bits, mask);
  }
  static HWY_INLINE std::uint32_t place_of(std::uint64_t bit) {
    return static_cast<std::uint32_t>(_tzcnt_u64(bit));
  }

 private:
  std::uint64_t zeros_;
  /// The next zero, as a bit of a mask that has one bit per zero.
  std::uint64_t next_;
};
#endif

/// A refinement in progress. The correction bits of a block come in the order of its non-zero
/// coefficients. They are gathered, and spread over these coefficients at the block's end.
template <class Zeros>
struct Refinement {
  BandScan& scan;
  ScanBytes& bytes = *scan.bytes;
  ScanBits bits = scan.bits;
  const RefinementTable& table = *scan.refinement_table;
  std::uint64_t* masks = scan.masks + scan.block * scan.masks_per_block;
  std::size_t left = scan.end - scan.block;
  std::uint32_t run = scan.run;
  const std::uint64_t band =
      (~std::uint64_t{0} >> scan.first) & (~std::uint64_t{0} << (63 - scan.last));
  /// Place of the band's last bit.
  const std::uint32_t last_place = 63 - scan.last;
  /// State of the open block. `place` is the bit index of the last coefficient that was passed.
  std::uint64_t history = 0;
  Zeros zeros{0};
  std::uint64_t made = 0;
  std::uint64_t negative = 0;
  std::uint64_t gathered = 0;
  std::uint32_t place = 0;
  bool sound = true;

  HWY_INLINE std::uint64_t& plane() {
    return masks[BlockMasks::planes + static_cast<std::size_t>(scan.low_bit)];
  }
  /// Takes up to 63 correction bits.
  HWY_INLINE void gather(std::uint32_t count) {
    if (count > 56) [[unlikely]] {
      gather_few(32);
      count -= 32;
    }
    gather_few(count);
  }
  HWY_INLINE void gather_few(std::uint32_t count) {
    refill(bits);
    gathered = gathered << count | bits.buffer >> 1 >> (63 - count);
    consume(bits, count);
  }
  /// Returns the number of non-zero coefficients that were not passed yet.
  HWY_INLINE std::uint32_t corrections() const {
    return static_cast<std::uint32_t>(std::popcount(history & ((std::uint64_t{1} << place) - 1)));
  }
  HWY_INLINE bool ends(bool is_sound) {
    sound = is_sound;
    return false;
  }
  HWY_INLINE void next_block() {
    masks += scan.masks_per_block;
    --left;
  }
  /// Opens the next block that has symbols. Returns false at the end, and for corrupt data.
  HWY_INLINE bool open() {
    for (; run > 0 && left > 0; --run, next_block()) {
      history = masks[BlockMasks::nonzero] & band;
      if (history == 0) continue;
      if (!ensure(bytes, bits)) return ends(false);
      gathered = 0;
      gather(static_cast<std::uint32_t>(std::popcount(history)));
      plane() |= Zeros::spread(gathered, history);
    }
    if (left == 0) return false;
    if (!ensure(bytes, bits)) return ends(false);
    history = masks[BlockMasks::nonzero] & band;
    zeros = Zeros(band & ~history);
    made = negative = gathered = 0;
    place = 64 - scan.first;
    return true;
  }
  /// Closes the block. Its end of band covers `blocks` blocks, including this one.
  HWY_INLINE bool close(std::uint32_t blocks) {
    masks[BlockMasks::nonzero] |= made;
    masks[BlockMasks::negative] |= negative;
    plane() |= made | Zeros::spread(gathered, history);
    run = blocks - 1;
    next_block();
    return open();
  }
  /// Passes the coefficients up to the zero `bit`, whose index is `at`. `count` of them are not
  /// zero.
  HWY_INLINE void pass(std::uint32_t entry, std::uint64_t bit, std::uint32_t at,
                       std::uint32_t count, std::uint32_t total) {
    gathered =
        gathered << count | (bits.buffer >> (64 - total) & ((std::uint64_t{1} << count) - 1));
    made |= bit;
    negative |= bit & static_cast<std::uint64_t>(
                          static_cast<std::int64_t>(static_cast<std::int32_t>(entry)) >> 63);
    zeros.pass(entry & 63, bit);
    place = at;
    consume(bits, total);
  }
  /// Takes one coefficient in the most frequent case: the buffer has enough bits, and the
  /// coefficient is not the band's last one. Returns false in the other cases, without taking bits.
  /// At least `RefinementTable::index_bits` bits must be left.
  HWY_INLINE bool take() {
    const std::uint32_t entry = look_up(table, bits);
    const std::uint32_t skipped = entry & 63;
    const std::uint64_t bit = zeros.after(skipped);
    const std::uint32_t at = Zeros::place_of(bit);
    const std::uint32_t count = place - at - 1 - skipped;
    const std::uint32_t total = count + (entry >> 8 & 63);
    // `at` is 64 if the block has too few zeros.
    if (at - last_place - 1 >= 63 - last_place || total + RefinementTable::index_bits > bits.count)
        [[unlikely]]
      return false;
    pass(entry, bit, at, count, total);
    return true;
  }
  /// Takes a symbol in the other cases. Returns false at the end, and for corrupt data.
  HWY_INLINE bool take_rare() {
    refill(bits);
    const std::uint32_t entry = look_up(table, bits);
    if ((entry & RefinementTable::end_of_band_bits) == RefinementTable::end_of_band_bits)
        [[likely]] {
      consume(bits, entry >> 8 & 63);
      gather(corrections());
      return close(entry >> 16);
    }
    const std::uint32_t skipped = entry & 63;
    if (skipped != RefinementTable::other) {
      const std::uint64_t bit = zeros.after(skipped);
      const std::uint32_t at = Zeros::place_of(bit);
      const std::uint32_t count = place - at - 1 - skipped;
      const std::uint32_t total = count + (entry >> 8 & 63);
      if (bit != 0 && total <= 56 - RefinementTable::index_bits) {
        pass(entry, bit, at, count, total);
        return at == last_place ? close(1) : true;
      }
    }
    return take_symbol_of_copy();
  }
  /// Calls `take_symbol` on a copy: variables whose address is taken are not kept in registers.
  HWY_INLINE bool take_symbol_of_copy() {
    Refinement copy = *this;
    const std::uint32_t blocks = copy.take_symbol();
    bits = copy.bits;
    gathered = copy.gathered;
    made = copy.made;
    negative = copy.negative;
    zeros = copy.zeros;
    place = copy.place;
    if (!copy.sound) return ends(false);
    return blocks > 0 ? close(blocks) : true;
  }
  /// Takes any symbol. Returns the number of blocks that its end of band covers, 1 if the block
  /// ends, otherwise 0.
  HWY_NOINLINE std::uint32_t take_symbol() {
    refill(bits);
    int length = 0;
    const int symbol = table.long_codes.find(bits.buffer, 1, length);
    const auto skipped = static_cast<std::uint32_t>(symbol >> 4);
    const int value_bits = symbol & 15;
    sound = symbol >= 0 && value_bits <= 1;
    if (!sound) return 0;
    consume(bits, static_cast<std::uint32_t>(length));
    if (value_bits == 0 && skipped < 15) {
      const std::uint32_t blocks = (1U << skipped) + take_bits(bits, skipped);
      gather(corrections());
      return blocks;
    }
    const bool is_negative = value_bits == 1 && take_bits(bits, 1) == 0;
    const std::uint64_t bit = zeros.after(skipped);
    sound = bit != 0;
    if (!sound) return 0;
    const std::uint32_t at = Zeros::place_of(bit);
    gather(place - at - 1 - skipped);
    if (value_bits == 1) made |= bit;
    if (is_negative) negative |= bit;
    zeros.pass(skipped, bit);
    place = at;
    return at == last_place ? 1 : 0;
  }
  HWY_INLINE void leave() {
    scan.bits = bits;
    scan.run = run;
    scan.block = scan.end - left;
  }
};

template <class Zeros>
HWY_NOINLINE bool refine_by(BandScan& scan) {
  Refinement<Zeros> refinement{scan};
  bool open = refinement.open();
  while (open) {
    do refill(refinement.bits);
    while (refinement.take() && refinement.take() && refinement.take() && refinement.take());
    open = refinement.take_rare();
  }
  refinement.leave();
  return refinement.sound;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::jpeg
HWY_AFTER_NAMESPACE();

#endif
