// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h), for the shifts of the newer
// ones: a value waits for the shift by the length of the one before. AVX2's have these, and AVX-512
// adds nothing.
#include "jpeg/mcus.h"

#include <array>
#include <tuple>

#define HWY_DISABLED_TARGETS (HWY_AVX3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "jpeg/mcus.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "jpeg/blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::jpeg {
namespace HWY_NAMESPACE {
namespace {

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

/// Where the blocks of one kind of each MCU go, and what they are decoded by.
struct BlocksOfKind {
  BlockGroup* groups;
  unsigned across;
  unsigned x;
  std::uint32_t* predictor;
  const DcTable* dc;
  const AcTable* ac;
  const SkipTable* skip;
  int last_place;
};
using Kinds = std::array<BlocksOfKind, std::tuple_size_v<decltype(ScanState::blocks)>>;

HWY_INLINE Kinds kinds_of(ScanState& state, CoefficientRow& row) {
  Kinds kinds;
  for (std::size_t n = 0; n < static_cast<std::size_t>(state.block_count); ++n) {
    const McuBlock& block = state.blocks[n];
    const auto component = static_cast<std::size_t>(block.component);
    kinds[n] = {row[block.component].row(block.y),
                static_cast<unsigned>(state.across[component]),
                static_cast<unsigned>(block.x),
                &state.predictors[component],
                block.dc,
                block.ac,
                block.skip,
                state.last_places[component]};
  }
  return kinds;
}

/// A block that is being decoded; the place of its last coefficient goes to `last`.
struct OpenBlock {
  std::int16_t* values;
  std::uint8_t* last;
};

/// Takes a block's DC coefficient; false where there is none.
HWY_INLINE bool open_block(ScanState& state, const BlocksOfKind& kind, int mcu, ScanBits& bits,
                           OpenBlock& opened) {
  if (!ensure(state.bytes, bits)) return false;
  refill(bits);
  std::int32_t difference = 0;
  if (!take_difference(bits, *kind.dc, difference)) return false;
  const std::uint32_t value = *kind.predictor + static_cast<std::uint32_t>(difference);
  *kind.predictor = value;
  const unsigned column = static_cast<unsigned>(mcu) * kind.across + kind.x;
  BlockGroup& group = kind.groups[column / BlockGroup::blocks];
  const unsigned lane = column % BlockGroup::blocks;
  opened = {group.values.data() + lane * block_side, group.last.data() + lane};
  opened.values[0] = static_cast<std::int16_t>(value);
  return true;
}

/// Decodes MCUs up to number `end`, from block `number` of MCU `mcu` on.
HWY_INLINE bool decode_blocks(ScanState& state, const Kinds& kinds, int mcu, int number, int end,
                              ScanBits bits) {
  const int count = state.block_count;
  for (; mcu < end; ++mcu, number = 0) {
    if (state.noted != nullptr) note_tile(state, bits);
    for (; number < count; ++number) {
      const BlocksOfKind& kind = kinds[static_cast<std::size_t>(number)];
      OpenBlock block;
      if (!open_block(state, kind, mcu, bits, block)) return false;
      const int last = kind.last_place == last_place
                           ? decode_coefficients(bits, *kind.ac, block.values)
                           : decode_first_coefficients(bits, *kind.ac, *kind.skip, kind.last_place,
                                                       block.values);
      if (last < 0) return false;
      *block.last = static_cast<std::uint8_t>(last);
    }
  }
  state.bits = bits;
  return true;
}

bool decode_mcus(ScanState& state, int first, int count, CoefficientRow& row) {
  return decode_blocks(state, kinds_of(state, row), first, 0, first + count, state.bits);
}

/// One of two rows that are decoded in turn, in a block of MCU `mcu`.
struct RowInTurn {
  ScanState& state;
  const Kinds& kinds;
  ScanBits bits;
  OpenBlock block{};
  const AcTable* table = nullptr;
  int place = 0;
  int mcu = 0;
  int number = 0;

  HWY_INLINE bool open() {
    const BlocksOfKind& kind = kinds[static_cast<std::size_t>(number)];
    if (!open_block(state, kind, mcu, bits, block)) return false;
    table = kind.ac;
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
    return decode_blocks(state, kinds, mcu, number + 1, end, bits);
  }
};

bool decode_in_turn(ScanState& first, CoefficientRow& first_row, ScanState& second,
                    CoefficientRow& second_row, int count) {
  const Kinds kinds_a = kinds_of(first, first_row);
  const Kinds kinds_b = kinds_of(second, second_row);
  RowInTurn a{first, kinds_a, first.bits};
  RowInTurn b{second, kinds_b, second.bits};
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
