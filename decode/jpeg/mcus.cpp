// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h), for the shifts of the newer
// ones: a value waits for the shift by the length of the one before.
#include "jpeg/mcus.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "jpeg/mcus.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace millrace::jpeg {
namespace HWY_NAMESPACE {
namespace {

constexpr int last_place = 63;

HWY_INLINE std::uint64_t big_endian(const std::uint8_t* bytes) {
  std::uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  return __builtin_bswap64(value);
}

/// Makes it 56 bits at least.
HWY_INLINE void refill(ScanBits& bits) {
  const std::uint32_t count = bits.count & 63;
  bits.buffer |= big_endian(bits.next) >> count;
  bits.next += (63 - count) >> 3;
  bits.count = count | 56;
}

/// `amount` may have anything above its low byte.
HWY_INLINE void drop(ScanBits& bits, std::uint32_t amount) {
  bits.buffer <<= amount & 63;
  bits.count -= amount;
}

template <class Table>
HWY_INLINE std::uint32_t look_up(const Table& table, const ScanBits& bits) {
  return table.entries[bits.buffer >> (64 - Table::index_bits)];
}

/// Takes a value of `length` bits, as differences and coefficients are stored (T.81, F.2.2.1).
HWY_INLINE std::int32_t take_value(ScanBits& bits, std::uint32_t length) {
  const auto stored = static_cast<std::uint32_t>(bits.buffer >> 1 >> (63 - length));
  const auto negative = static_cast<std::uint32_t>(~(static_cast<std::int64_t>(bits.buffer) >> 63));
  drop(bits, length);
  return static_cast<std::int32_t>(stored - (negative & ((1U << length) - 1)));
}

/// Takes a DC coefficient's difference, of at most 27 bits; false if no code has these bits.
HWY_INLINE bool take_difference(ScanBits& bits, const DcTable& table, std::int32_t& difference) {
  const std::uint32_t entry = look_up(table, bits);
  auto length = static_cast<int>(entry & 0xFF);
  auto value_bits = static_cast<int>(entry >> 8);
  if (length == 0) [[unlikely]] {
    int found = 0;
    value_bits = table.long_codes.find(bits.buffer, found);
    length = found;
    if (value_bits < 0) return false;
  }
  drop(bits, static_cast<std::uint32_t>(length));
  difference = take_value(bits, static_cast<std::uint32_t>(value_bits));
  return true;
}

/// One symbol of AC coefficients. `place` is where it belongs, if it is a value.
struct Symbol {
  enum Kind { value_of_place, end, nothing };
  ScanBits rest;
  int place;
  std::int32_t value;
  Kind kind;
};

/// Takes one symbol, whatever it is, that follows the coefficient at `place`. At least 56 bits are
/// left. In and out by value: what has an address is not kept in registers.
HWY_NOINLINE Symbol take_symbol(ScanBits bits, const AcTable& table, int place) {
  refill(bits);
  const std::uint32_t entry = look_up(table, bits);
  std::int32_t value = 0;
  if ((entry >> 8 & AcTable::other) == 0) {
    drop(bits, entry & 0xFF);
    place += static_cast<int>(entry >> 8 & 0xFF);
    value = static_cast<std::int16_t>(entry >> 16);
  } else {
    auto length = static_cast<int>(entry & 0xFF);
    int symbol = static_cast<int>(entry >> 16);
    if (length == 0) symbol = table.long_codes.find(bits.buffer, length);
    if (symbol < 0) return {bits, place, 0, Symbol::nothing};
    drop(bits, static_cast<std::uint32_t>(length));
    if (symbol == 0) return {bits, place, 0, Symbol::end};
    const int value_bits = symbol & 15;
    if ((value_bits == 0 && symbol != 0xF0) || value_bits > AcTable::most_bits)
      return {bits, place, 0, Symbol::nothing};
    place += (symbol >> 4) + 1;
    value = take_value(bits, static_cast<std::uint32_t>(value_bits));
  }
  refill(bits);
  return {bits, place, value, place > last_place ? Symbol::nothing : Symbol::value_of_place};
}

/// Sees to it that a block can be taken: false behind the scan's end.
HWY_INLINE bool ensure(ScanBytes& bytes, ScanBits& bits) {
  if (bits.next < bytes.limit()) [[likely]]
    return true;
  const std::uint8_t* next = bits.next;
  const bool there = bytes.ensure(next);
  bits.next = next;
  return there;
}

enum class Turn { goes_on, ends, nothing };

/// Takes one coefficient, or a block's end. At least `AcTable::index_bits` bits are left.
HWY_INLINE Turn take_turn(ScanBits& bits, const AcTable& table, std::int16_t* block, int& place) {
  const std::uint32_t entry = look_up(table, bits);
  const int next = place + static_cast<int>(entry >> 8 & 0xFF);
  if (next < last_place) [[likely]] {
    drop(bits, entry);
    place = next;
    block[places_in_group[static_cast<std::size_t>(place)]] =
        static_cast<std::int16_t>(entry >> 16);
    return Turn::goes_on;
  }
  if ((entry >> 8) == AcTable::other && (entry & 0xFF) != 0) {  // the usual end
    drop(bits, entry);
    return Turn::ends;
  }
  // A value that did not fit into the index: one of twenty-five.
  const std::uint32_t value_bits = entry >> 16 & 15;
  const int far = place + static_cast<int>(entry >> 20 & 15) + 1;
  if ((entry & 0xFF) != 0 && value_bits != 0 && value_bits <= AcTable::most_bits &&
      next >= static_cast<int>(AcTable::other) && far < last_place) {
    refill(bits);
    drop(bits, entry & 0xFF);
    place = far;
    block[places_in_group[static_cast<std::size_t>(place)]] =
        static_cast<std::int16_t>(take_value(bits, value_bits));
    refill(bits);
    return Turn::goes_on;
  }
  const Symbol symbol = take_symbol(bits, table, place);
  bits = symbol.rest;
  place = symbol.place;
  if (symbol.kind == Symbol::nothing) return Turn::nothing;
  if (symbol.kind == Symbol::end) return Turn::ends;
  block[places_in_group[static_cast<std::size_t>(place)]] = static_cast<std::int16_t>(symbol.value);
  return place == last_place ? Turn::ends : Turn::goes_on;
}

/// Decodes a block's AC coefficients behind `place`; returns the place of the last one, or -1.
HWY_INLINE int decode_coefficients(ScanBits& bits, const AcTable& table, std::int16_t* block,
                                   int place = 0) {
  // Each look-up takes at most as many bits as the index has.
  static_assert(5 * AcTable::index_bits <= 56);
  for (;;) {
    refill(bits);
    for (int n = 0; n < 5; ++n) {
      const Turn turn = take_turn(bits, table, block, place);
      if (turn != Turn::goes_on) return turn == Turn::ends ? place : -1;
    }
  }
}

/// Passes over a block's AC coefficients behind `place`; false if they are not sound.
HWY_INLINE bool skip_coefficients(ScanBits& bits, const AcTable& table, const SkipTable& skip,
                                  int place = 0) {
  static_assert(4 * SkipTable::most_bits <= 56);
  for (;;) {
    refill(bits);
    for (int n = 0; n < 4; ++n) {
      const std::uint32_t entry = look_up(skip, bits);
      const int next = place + static_cast<int>(entry >> 8);
      if (next < last_place) [[likely]] {
        drop(bits, entry);
        place = next;
        continue;
      }
      const auto moved = entry >> 8;
      const bool has_end = (moved & SkipTable::end) != 0;
      const int last = next - (has_end ? static_cast<int>(SkipTable::end) : 0);
      // The symbols before an end must leave room for it.
      if (moved < SkipTable::other && (has_end ? last < last_place : last == last_place)) {
        drop(bits, entry);
        return true;
      }
      const Symbol symbol = take_symbol(bits, table, place);
      bits = symbol.rest;
      place = symbol.place;
      if (symbol.kind == Symbol::nothing) return false;
      if (symbol.kind == Symbol::end || place == last_place) return true;
    }
  }
}

/// Decodes a block's AC coefficients up to the place `limit`, which is below the last one, and
/// passes over the rest; returns the place of the last one that is kept, or -1.
HWY_INLINE int decode_first_coefficients(ScanBits& bits, const AcTable& table,
                                         const SkipTable& skip, int limit, std::int16_t* block) {
  int place = 0;
  while (place < limit) {
    refill(bits);
    std::uint32_t entry = look_up(table, bits);
    int next = place + static_cast<int>(entry >> 8 & 0xFF);
    for (int n = 0; n < 4 && next <= limit; ++n) {
      drop(bits, entry);
      place = next;
      block[places_in_group[static_cast<std::size_t>(place)]] =
          static_cast<std::int16_t>(entry >> 16);
      entry = look_up(table, bits);
      next = place + static_cast<int>(entry >> 8 & 0xFF);
    }
    if (next <= limit) continue;
    if ((entry >> 8) == AcTable::other && (entry & 0xFF) != 0) {
      drop(bits, entry);
      return place;
    }
    if ((entry >> 8 & AcTable::other) == 0) break;  // the rest lies behind the limit
    const Symbol symbol = take_symbol(bits, table, place);
    bits = symbol.rest;
    if (symbol.kind == Symbol::nothing) return -1;
    if (symbol.kind == Symbol::end || symbol.place == last_place) return place;
    if (symbol.place > limit)
      return skip_coefficients(bits, table, skip, symbol.place) ? place : -1;
    place = symbol.place;
    block[places_in_group[static_cast<std::size_t>(place)]] =
        static_cast<std::int16_t>(symbol.value);
  }
  return skip_coefficients(bits, table, skip, place) ? place : -1;
}

/// Notes the point of an MCU that begins a tile.
HWY_INLINE void note_tile(ScanState& state, const ScanBits& bits) {
  if (state.column % Tiles::mcus == 0) {
    SeekPoint& point = *state.noted++;
    point.bit = 8 * state.bytes.place_of(bits.next) - (bits.count & 63);
    for (std::size_t n = 0; n < point.predictors.size(); ++n)
      point.predictors[n] = static_cast<std::uint16_t>(state.predictors[n]);
  }
  if (++state.column == state.row_mcus) state.column = 0;
}

/// A block that is being decoded; the place of its last coefficient goes to `last`.
struct OpenBlock {
  std::int16_t* values;
  std::uint8_t* last;
  const McuBlock* kind;
};

/// Takes a block's DC coefficient; false where there is none.
HWY_INLINE bool open_block(ScanState& state, CoefficientRow& row, int mcu, int number,
                           ScanBits& bits, OpenBlock& opened) {
  const McuBlock& kind = state.blocks[static_cast<std::size_t>(number)];
  const auto component = static_cast<std::size_t>(kind.component);
  const int column = mcu * state.across[component] + kind.x;
  BlockGroup& group = row[kind.component].row(kind.y)[column / BlockGroup::blocks];
  const int lane = column % BlockGroup::blocks;
  opened = {group.values.data() + lane * block_side, &group.last[static_cast<std::size_t>(lane)],
            &kind};
  if (!ensure(state.bytes, bits)) return false;
  refill(bits);
  std::int32_t difference = 0;
  if (!take_difference(bits, *kind.dc, difference)) return false;
  state.predictors[component] += static_cast<std::uint32_t>(difference);
  opened.values[0] = static_cast<std::int16_t>(state.predictors[component]);
  return true;
}

/// Decodes MCUs up to number `end`, from block `number` of MCU `mcu` on.
HWY_INLINE bool decode_blocks(ScanState& state, CoefficientRow& row, int mcu, int number, int end,
                              ScanBits bits) {
  for (; mcu < end; ++mcu, number = 0) {
    if (state.noted != nullptr) note_tile(state, bits);
    for (; number < state.block_count; ++number) {
      OpenBlock block;
      if (!open_block(state, row, mcu, number, bits, block)) return false;
      const int most = state.last_places[static_cast<std::size_t>(block.kind->component)];
      const int last = most == last_place
                           ? decode_coefficients(bits, *block.kind->ac, block.values)
                           : decode_first_coefficients(bits, *block.kind->ac, *block.kind->skip,
                                                       most, block.values);
      if (last < 0) return false;
      *block.last = static_cast<std::uint8_t>(last);
    }
  }
  state.bits = bits;
  return true;
}

bool decode_mcus(ScanState& state, int first, int count, CoefficientRow& row) {
  return decode_blocks(state, row, first, 0, first + count, state.bits);
}

/// One of two rows that are decoded in turn, in a block of MCU `mcu`.
struct RowInTurn {
  ScanState& state;
  CoefficientRow& row;
  ScanBits bits;
  OpenBlock block{};
  const AcTable* table = nullptr;
  int place = 0;
  int mcu = 0;
  int number = 0;

  HWY_INLINE bool open() {
    if (!open_block(state, row, mcu, number, bits, block)) return false;
    table = block.kind->ac;
    place = 0;
    refill(bits);
    return true;
  }
  /// Takes a coefficient, or ends the block and opens the next one; `ends` with MCU `end`.
  HWY_INLINE Turn take(int end) {
    const Turn turn = take_turn(bits, *table, block.values, place);
    if (turn != Turn::ends) return turn;
    *block.last = static_cast<std::uint8_t>(place);
    if (++number == state.block_count) number = 0, ++mcu;
    if (mcu < end) return open() ? Turn::goes_on : Turn::nothing;
    state.bits = bits;
    return Turn::ends;
  }
  /// Decodes what is left of the row.
  HWY_INLINE bool finish(int end) {
    const int last = decode_coefficients(bits, *table, block.values, place);
    if (last < 0) return false;
    *block.last = static_cast<std::uint8_t>(last);
    return decode_blocks(state, row, mcu, number + 1, end, bits);
  }
};

bool decode_in_turn(ScanState& first, CoefficientRow& first_row, ScanState& second,
                    CoefficientRow& second_row, int count) {
  RowInTurn a{first, first_row, first.bits};
  RowInTurn b{second, second_row, second.bits};
  if (!a.open() || !b.open()) return false;
  for (;;) {
    refill(a.bits);
    refill(b.bits);
    for (int n = 0; n < 5; ++n) {
      if (const Turn turn = a.take(count); turn != Turn::goes_on) [[unlikely]]
        return turn == Turn::ends && b.finish(count);
      if (const Turn turn = b.take(count); turn != Turn::goes_on) [[unlikely]]
        return turn == Turn::ends && a.finish(count);
    }
  }
}

bool skip_mcus(ScanState& state, std::int64_t count) {
  BlockGroup unused;
  ScanBits bits = state.bits;
  for (; count > 0; --count) {
    if (state.noted != nullptr) note_tile(state, bits);
    for (int number = 0; number < state.block_count; ++number) {
      const McuBlock& place = state.blocks[static_cast<std::size_t>(number)];
      if (!ensure(state.bytes, bits)) return false;
      refill(bits);
      std::int32_t difference = 0;
      if (!take_difference(bits, *place.dc, difference)) return false;
      state.predictors[static_cast<std::size_t>(place.component)] +=
          static_cast<std::uint32_t>(difference);
      if (place.skip != nullptr ? !skip_coefficients(bits, *place.ac, *place.skip)
                                : decode_coefficients(bits, *place.ac, unused.values.data()) < 0)
        return false;
    }
  }
  state.bits = bits;
  return true;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::jpeg {

HWY_EXPORT(decode_mcus);
HWY_EXPORT(decode_in_turn);
HWY_EXPORT(skip_mcus);

bool decode_mcus(ScanState& state, int first, int count, CoefficientRow& row) {
  return HWY_DYNAMIC_DISPATCH(decode_mcus)(state, first, count, row);
}

bool decode_in_turn(ScanState& first, CoefficientRow& first_row, ScanState& second,
                    CoefficientRow& second_row, int count) {
  return HWY_DYNAMIC_DISPATCH(decode_in_turn)(first, first_row, second, second_row, count);
}

bool skip_mcus(ScanState& state, std::int64_t count) {
  return HWY_DYNAMIC_DISPATCH(skip_mcus)(state, count);
}

}  // namespace millrace::jpeg
#endif
