// SPDX-License-Identifier: Apache-2.0
//
// Functions that decode or skip the bits of a block. Included once for each instruction set.
#if defined(MILLRACE_JPEG_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_JPEG_BLOCKS_INL_H
#undef MILLRACE_JPEG_BLOCKS_INL_H
#else
#define MILLRACE_JPEG_BLOCKS_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "jpeg/coefficients.h"
#include "jpeg/huffman.h"
#include "jpeg/mcus.h"
#include "jpeg/scan_bytes.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::jpeg {
namespace HWY_NAMESPACE {
namespace {

inline constexpr std::uint32_t last_zigzag_index = 63;

HWY_INLINE std::uint64_t big_endian(const std::uint8_t* bytes) {
  std::uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  return __builtin_bswap64(value);
}

/// Fills the buffer to at least 56 bits.
HWY_INLINE void refill(ScanBits& bits) {
  const std::uint32_t count = bits.count & 63;
  bits.buffer |= big_endian(bits.next) >> count;
  bits.next += (63 - count) >> 3;
  bits.count = count | 56;
}

/// Drops as many bits as the low byte of `amount` states, and ignores the higher bits of `amount`.
HWY_INLINE void consume(ScanBits& bits, std::uint32_t amount) {
  bits.buffer <<= amount & 63;
  bits.count -= amount;
}

template <class Table>
HWY_INLINE std::uint32_t look_up(const Table& table, const ScanBits& bits) {
  return table.entries[bits.buffer >> (64 - Table::index_bits)];
}

/// Returns the value of the first `length` bits, in the encoding of differences and coefficients
/// (T.81, F.2.2.1).
HWY_INLINE std::int32_t value_of(std::uint64_t bits, std::uint32_t length) {
  const auto stored = static_cast<std::uint32_t>(bits >> 1 >> (63 - length));
  const auto negative = static_cast<std::uint32_t>(~(static_cast<std::int64_t>(bits) >> 63));
  return static_cast<std::int32_t>(stored - (negative & ((1U << length) - 1)));
}

HWY_INLINE std::int32_t take_value(ScanBits& bits, std::uint32_t length) {
  const std::int32_t value = value_of(bits.buffer, length);
  consume(bits, length);
  return value;
}

/// Returns the value in the last `length` of the bits that a table's entry covers.
HWY_INLINE std::int32_t value_at_end(const ScanBits& bits, std::uint32_t entry,
                                     std::uint32_t length) {
  return value_of(bits.buffer << ((entry & 0xFF) - length), length);
}

/// Takes a DC coefficient's difference, of at most 27 bits. Returns false for bits that are not a
/// code.
HWY_INLINE bool take_difference(ScanBits& bits, const DcTable& table, std::int32_t& difference) {
  const std::uint32_t entry = look_up(table, bits);
  if (entry == 0) [[unlikely]] {
    int length = 0;
    const int value_bits = table.long_codes.find(bits.buffer, DcTable::index_bits + 1, length);
    if (value_bits < 0) return false;
    consume(bits, static_cast<std::uint32_t>(length));
    difference = take_value(bits, static_cast<std::uint32_t>(value_bits));
    return true;
  }
  difference = value_at_end(bits, entry, entry >> 8);
  consume(bits, entry);
  return true;
}

/// One symbol of AC coefficients. `zigzag_index` is that of the coefficient, if the symbol has one.
struct Symbol {
  enum Kind { coefficient, end_of_block, invalid };
  ScanBits rest;
  std::uint32_t zigzag_index;
  std::int32_t value;
  Kind kind;
};

/// Takes any symbol that follows the coefficient at `zigzag_index`. The buffer may have any number
/// of bits before the call. After a coefficient it has at least 56. Arguments and result are passed
/// by value, since variables with an address are not kept in registers.
inline HWY_NOINLINE Symbol take_symbol(ScanBits bits, const AcTable& table,
                                       std::uint32_t zigzag_index) {
  refill(bits);
  const std::uint32_t entry = look_up(table, bits);
  const std::uint32_t moved = entry >> 8 & 0xFF;
  if (entry == AcTable::unsound) return {bits, zigzag_index, 0, Symbol::invalid};
  if (moved == AcTable::end) {
    consume(bits, entry);
    return {bits, zigzag_index, 0, Symbol::end_of_block};
  }
  std::int32_t value = 0;
  if (entry == AcTable::long_code) {
    int length = 0;
    const int symbol = table.long_codes.find(bits.buffer, AcTable::index_bits + 1, length);
    consume(bits, static_cast<std::uint32_t>(length));
    if (symbol == 0) return {bits, zigzag_index, 0, Symbol::end_of_block};
    if (symbol < 0 || !is_coefficient(symbol)) return {bits, zigzag_index, 0, Symbol::invalid};
    zigzag_index += static_cast<std::uint32_t>(symbol >> 4) + 1;
    value = take_value(bits, static_cast<std::uint32_t>(symbol & 15));
  } else {
    zigzag_index += moved & (AcTable::other - 1);
    value = moved >= AcTable::other ? value_at_end(bits, entry, entry >> 16)
                                    : static_cast<std::int16_t>(entry >> 16);
    consume(bits, entry);
  }
  refill(bits);
  return {bits, zigzag_index, value,
          zigzag_index > last_zigzag_index ? Symbol::invalid : Symbol::coefficient};
}

/// Ensures that the bits of a block can be taken. Returns false after the scan's end.
HWY_INLINE bool ensure(ScanBytes& bytes, ScanBits& bits) {
  if (bits.next < bytes.limit()) [[likely]]
    return true;
  const std::uint8_t* next = bits.next;
  const bool there = bytes.ensure(next);
  bits.next = next;
  return there;
}

enum class BlockStep { more, end_of_block, invalid };

/// Takes one coefficient in the most frequent case: its bits fit into the table's index, and it is
/// not the block's last one. Returns false in the other cases, without taking bits. At least
/// `AcTable::index_bits` bits must be left.
HWY_INLINE bool take_coefficient(ScanBits& bits, const AcTable& table, std::int16_t* block,
                                 std::uint32_t& zigzag_index) {
  const std::uint32_t entry = look_up(table, bits);
  const std::uint32_t next = zigzag_index + (entry >> 8 & 0xFF);
  if (next >= last_zigzag_index) [[unlikely]]
    return false;
  consume(bits, entry);
  zigzag_index = next;
  block[zigzag_offsets[zigzag_index]] = static_cast<std::int16_t>(entry >> 16);
  return true;
}

/// Takes a coefficient in the other cases, or a block's end.
HWY_INLINE BlockStep take_other(ScanBits& bits, const AcTable& table, std::int16_t* block,
                                std::uint32_t& zigzag_index) {
  const std::uint32_t entry = look_up(table, bits);
  if ((entry & 0xFF00) == AcTable::end << 8) {
    consume(bits, entry);
    return BlockStep::end_of_block;
  }
  // The shift differs from the one in `take_coefficient` on purpose: with equal code, a compiler
  // would compute this one there too, for every coefficient.
  const std::uint32_t next = zigzag_index + (entry << 17 >> 25);
  // A value that does not fit into the index: about one coefficient in thirty.
  if ((entry & AcTable::other << 8) != 0) {
    if ((entry & 0xFF) != 0 && next < last_zigzag_index) [[likely]] {
      refill(bits);
      block[zigzag_offsets[next]] =
          static_cast<std::int16_t>(value_at_end(bits, entry, entry >> 16));
      consume(bits, entry);
      zigzag_index = next;
      return BlockStep::more;
    }
  } else if (next == last_zigzag_index) {
    consume(bits, entry);
    zigzag_index = next;
    block[zigzag_offsets[last_zigzag_index]] = static_cast<std::int16_t>(entry >> 16);
    return BlockStep::end_of_block;
  }
  const Symbol symbol = take_symbol(bits, table, zigzag_index);
  bits = symbol.rest;
  zigzag_index = symbol.zigzag_index;
  if (symbol.kind == Symbol::invalid) return BlockStep::invalid;
  if (symbol.kind == Symbol::end_of_block) return BlockStep::end_of_block;
  block[zigzag_offsets[zigzag_index]] = static_cast<std::int16_t>(symbol.value);
  return zigzag_index == last_zigzag_index ? BlockStep::end_of_block : BlockStep::more;
}

/// Decodes a block's AC coefficients after `zigzag_index`. Returns false if they are corrupt.
HWY_INLINE bool decode_coefficients(ScanBits& bits, const AcTable& table, std::int16_t* block,
                                    std::uint32_t zigzag_index = 0) {
  // Each look-up takes at most as many bits as the index has.
  static_assert(5 * AcTable::index_bits <= 56);
  const auto take = [&] { return take_coefficient(bits, table, block, zigzag_index); };
  for (;;) {
    refill(bits);
    if (take() && take() && take() && take() && take()) continue;
    const BlockStep step = take_other(bits, table, block, zigzag_index);
    if (step != BlockStep::more) return step == BlockStep::end_of_block;
  }
}

/// Skips symbols in the most frequent case. Returns false in the other cases, like
/// `take_coefficient`. At least `SkipTable::max_bits` bits must be left.
HWY_INLINE bool skip_symbols(ScanBits& bits, const SkipTable& skip, std::uint32_t& zigzag_index) {
  const std::uint32_t entry = look_up(skip, bits);
  const std::uint32_t next = zigzag_index + (entry >> 8);
  if (next >= last_zigzag_index) [[unlikely]]
    return false;
  consume(bits, entry);
  zigzag_index = next;
  return true;
}

/// Skips symbols in the other cases.
HWY_INLINE BlockStep skip_other(ScanBits& bits, const AcTable& table, const SkipTable& skip,
                                std::uint32_t& zigzag_index) {
  const std::uint32_t entry = look_up(skip, bits);
  const auto moved = entry >> 8;
  const bool has_end = (moved & SkipTable::end) != 0;
  const std::uint32_t last = zigzag_index + moved - (has_end ? SkipTable::end : 0);
  // An end of block is only valid before the last coefficient.
  if (moved < SkipTable::other &&
      (has_end ? last < last_zigzag_index : last == last_zigzag_index)) {
    consume(bits, entry);
    return BlockStep::end_of_block;
  }
  // Takes a single symbol: the entry has none, or the block ends before the entry's last symbol.
  const std::uint32_t single = look_up(table, bits);
  const std::uint32_t next = zigzag_index + (single >> 8 & 0xFF);
  if (next <= last_zigzag_index) [[likely]] {
    consume(bits, single);
    zigzag_index = next;
    return zigzag_index == last_zigzag_index ? BlockStep::end_of_block : BlockStep::more;
  }
  const Symbol symbol = take_symbol(bits, table, zigzag_index);
  bits = symbol.rest;
  zigzag_index = symbol.zigzag_index;
  if (symbol.kind == Symbol::invalid) return BlockStep::invalid;
  return symbol.kind == Symbol::end_of_block || zigzag_index == last_zigzag_index
             ? BlockStep::end_of_block
             : BlockStep::more;
}

/// Skips a block's AC coefficients after `zigzag_index`. Returns false if they are corrupt.
HWY_INLINE bool skip_coefficients(ScanBits& bits, const AcTable& table, const SkipTable& skip,
                                  std::uint32_t zigzag_index = 0) {
  static_assert(4 * SkipTable::max_bits <= 56);
  const auto take = [&] { return skip_symbols(bits, skip, zigzag_index); };
  for (;;) {
    refill(bits);
    if (take() && take() && take() && take()) continue;
    const BlockStep step = skip_other(bits, table, skip, zigzag_index);
    if (step != BlockStep::more) return step == BlockStep::end_of_block;
  }
}

/// Decodes a block's AC coefficients up to the zigzag index `limit`, which is below 63, and skips
/// the others. Returns false if they are corrupt.
HWY_INLINE bool decode_first_coefficients(ScanBits& bits, const AcTable& table,
                                          const SkipTable& skip, std::uint32_t limit,
                                          std::int16_t* block) {
  std::uint32_t zigzag_index = 0;
  while (zigzag_index < limit) {
    refill(bits);
    std::uint32_t entry = look_up(table, bits);
    std::uint32_t next = zigzag_index + (entry >> 8 & 0xFF);
    for (int n = 0; n < 4 && next <= limit; ++n) {
      consume(bits, entry);
      zigzag_index = next;
      block[zigzag_offsets[zigzag_index]] = static_cast<std::int16_t>(entry >> 16);
      entry = look_up(table, bits);
      next = zigzag_index + (entry >> 8 & 0xFF);
    }
    if (next <= limit) continue;
    if ((entry & 0xFF00) == AcTable::end << 8) {
      consume(bits, entry);
      return true;
    }
    if ((entry >> 8 & AcTable::other) == 0) break;  // the next one lies after the limit
    const Symbol symbol = take_symbol(bits, table, zigzag_index);
    bits = symbol.rest;
    if (symbol.kind == Symbol::invalid) return false;
    if (symbol.kind == Symbol::end_of_block || symbol.zigzag_index == last_zigzag_index)
      return true;
    if (symbol.zigzag_index > limit)
      return skip_coefficients(bits, table, skip, symbol.zigzag_index);
    zigzag_index = symbol.zigzag_index;
    block[zigzag_offsets[zigzag_index]] = static_cast<std::int16_t>(symbol.value);
  }
  return skip_coefficients(bits, table, skip, zigzag_index);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::jpeg
HWY_AFTER_NAMESPACE();

#endif
