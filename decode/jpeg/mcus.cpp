// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h), for the shifts of the newer
// ones: a value waits for the shift by the length of the one before. AVX2's have these, and AVX-512
// adds nothing.
#include "jpeg/mcus.h"

#include <type_traits>

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
  if ((state.column & state.within_tile) == 0) {
    SeekPoint& point = *state.noted++;
    point.bit = 8 * state.bytes.place_of(bits.next) - (bits.count & 63);
    for (std::size_t n = 0; n < point.predictors.size(); ++n)
      point.predictors[n] = static_cast<std::uint16_t>(state.predictors[n]);
  }
  if (++state.column == state.row_mcus) state.column = 0;
}

/// Opens a block of MCU `mcu`, up to its AC coefficients; false if it has no DC coefficient.
template <bool skips>
HWY_INLINE bool open_block(ScanState& scan, const BlocksOfKind& kind, std::int64_t mcu,
                           ScanBits& bits, OpenBlock& block) {
  if (!ensure(scan.bytes, bits)) return false;
  refill(bits);
  std::int32_t difference = 0;
  if (!take_difference(bits, *kind.dc, difference)) return false;
  const std::uint32_t value = *kind.predictor + static_cast<std::uint32_t>(difference);
  *kind.predictor = value;
  if constexpr (!skips) {
    const unsigned column = static_cast<unsigned>(mcu) * kind.across + kind.x;
    BlockGroup& group = kind.groups[column / BlockGroup::blocks];
    const unsigned lane = column % BlockGroup::blocks;
    block = {group.values.data() + lane * block_side, group.last.data() + lane};
    block.values[0] = static_cast<std::int16_t>(value);
  }
  return true;
}

/// Decodes the rest of a block, or passes over it, from the coefficient behind `place` on; false if
/// it is not sound.
template <bool skips>
HWY_INLINE bool end_block(const BlocksOfKind& kind, const OpenBlock& block, int place,
                          ScanBits& bits) {
  if constexpr (skips) {
    if (kind.skip != nullptr) return skip_coefficients(bits, *kind.ac, *kind.skip, place);
    BlockGroup unused;
    return decode_coefficients(bits, *kind.ac, unused.values.data(), place) >= 0;
  } else {
    const int last =
        kind.last_place == last_place
            ? decode_coefficients(bits, *kind.ac, block.values, place)
            : decode_first_coefficients(bits, *kind.ac, *kind.skip, kind.last_place, block.values);
    *block.last = static_cast<std::uint8_t>(last);
    return last >= 0;
  }
}

template <bool skips>
HWY_INLINE McuRun::State finish_blocks(McuRun& run, ScanBits& bits) {
  ScanState& scan = *run.scan;
  int number = run.number;
  if (run.in_block &&
      !end_block<skips>(run.kinds[static_cast<std::size_t>(number++)], run.block, run.place, bits))
    return McuRun::State::unsound;
  const int count = scan.block_count;
  for (std::int64_t mcu = run.mcu; mcu < run.end; ++mcu, number = 0) {
    if (number == 0 && scan.noted != nullptr) note_tile(scan, bits);
    for (; number < count; ++number) {
      const BlocksOfKind& kind = run.kinds[static_cast<std::size_t>(number)];
      OpenBlock block;
      if (!open_block<skips>(scan, kind, mcu, bits, block) ||
          !end_block<skips>(kind, block, 0, bits))
        return McuRun::State::unsound;
    }
  }
  return McuRun::State::done;
}

void finish(McuRun& run) {
  ScanBits bits = run.scan->bits;
  run.state = run.skips ? finish_blocks<true>(run, bits) : finish_blocks<false>(run, bits);
  run.scan->bits = bits;
}

/// One of two runs that take turns, in an open block.
template <bool skips>
struct Lane {
  McuRun& run;
  ScanState& scan = *run.scan;
  ScanBits bits = scan.bits;
  std::conditional_t<skips, const SkipTable*, const AcTable*> table = nullptr;
  OpenBlock block = run.block;
  int place = run.place;
  const BlocksOfKind* const first_kind = run.kinds.data();
  const BlocksOfKind* const kinds_end = first_kind + scan.block_count;
  /// Of the open block.
  const BlocksOfKind* kind = first_kind + run.number;
  std::int64_t mcu = run.mcu;
  bool in_block = run.in_block;

  HWY_INLINE bool begin() {
    if (!in_block) return open();
    use_tables();
    return true;
  }
  HWY_INLINE void use_tables() {
    if constexpr (skips)
      table = kind->skip;
    else
      table = kind->ac;
  }
  /// Opens the block of `kind`; false if that is behind the run's end, or not sound.
  HWY_INLINE bool open() {
    if (kind == kinds_end) kind = first_kind, ++mcu;
    if (kind == first_kind) {
      if (mcu == run.end) return ends(McuRun::State::done);
      if (scan.noted != nullptr) note_tile(scan, bits);
    }
    if (!open_block<skips>(scan, *kind, mcu, bits, block)) return ends(McuRun::State::unsound);
    use_tables();
    place = 0;
    in_block = true;
    return true;
  }
  HWY_INLINE bool ends(McuRun::State state) {
    run.state = state;
    in_block = false;
    return false;
  }
  HWY_INLINE bool take() {
    if constexpr (skips)
      return skip_symbols(bits, *table, place);
    else
      return take_coefficient(bits, *table, block.values, place);
  }
  /// Takes what `take` has not taken; at a block's end the next one is opened. False if there is
  /// none, as the run's state says.
  HWY_INLINE bool take_rest() {
    Turn turn;
    if constexpr (skips)
      turn = skip_other(bits, *kind->ac, *table, place);
    else
      turn = take_other(bits, *table, block.values, place);
    if (turn == Turn::goes_on) return true;
    if (turn == Turn::nothing) return ends(McuRun::State::unsound);
    if constexpr (!skips) *block.last = static_cast<std::uint8_t>(place);
    ++kind;
    return open();
  }
  HWY_INLINE void leave() {
    scan.bits = bits;
    run.block = block;
    run.place = place;
    run.number = static_cast<int>(kind - first_kind);
    run.mcu = mcu;
    run.in_block = in_block;
  }
};

template <bool a_skips, bool b_skips>
HWY_NOINLINE void take_turns_of(McuRun& run_a, McuRun& run_b) {
  Lane<a_skips> a{run_a};
  Lane<b_skips> b{run_b};
  // One that is not open leaves the other one where it was.
  if (a.begin() && b.begin()) {
    enum class Waits { none, a, b };
    const auto take_both = [&] {
      for (int n = 0; n < (a_skips || b_skips ? 4 : 5); ++n) {
        if (!a.take()) return Waits::a;
        if (!b.take()) return Waits::b;
      }
      return Waits::none;
    };
    bool both = true;
    while (both) {
      refill(a.bits);
      refill(b.bits);
      switch (take_both()) {
        case Waits::a:
          both = a.take_rest() && (b.take() || b.take_rest());
          break;
        case Waits::b:
          both = b.take_rest();
          break;
        case Waits::none:
          break;
      }
    }
  }
  a.leave();
  b.leave();
}

void take_turns(McuRun& a, McuRun& b) {
  if (a.skips)
    b.skips ? take_turns_of<true, true>(a, b) : take_turns_of<true, false>(a, b);
  else
    b.skips ? take_turns_of<false, true>(a, b) : take_turns_of<false, false>(a, b);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::jpeg {
namespace {

void begin_run(McuRun& run, ScanState& scan, std::int64_t first, std::int64_t count) {
  run.state = McuRun::State::open;
  run.scan = &scan;
  run.mcu = first;
  run.end = first + count;
  run.number = 0;
  run.in_block = false;
  for (std::size_t n = 0; n < static_cast<std::size_t>(scan.block_count); ++n) {
    const McuBlock& block = scan.blocks[n];
    const auto component = static_cast<std::size_t>(block.component);
    BlocksOfKind& kind = run.kinds[n];
    kind.predictor = &scan.predictors[component];
    kind.dc = block.dc;
    kind.ac = block.ac;
    kind.skip = block.skip;
    kind.last_place = scan.last_places[component];
  }
}

}  // namespace

void begin_decoding(McuRun& run, ScanState& scan, CoefficientRow& row, int first, int count) {
  begin_run(run, scan, first, count);
  run.skips = false;
  for (std::size_t n = 0; n < static_cast<std::size_t>(scan.block_count); ++n) {
    const McuBlock& block = scan.blocks[n];
    BlocksOfKind& kind = run.kinds[n];
    kind.groups = row[block.component].row(block.y);
    kind.across = static_cast<unsigned>(scan.across[static_cast<std::size_t>(block.component)]);
    kind.x = static_cast<unsigned>(block.x);
  }
}

void begin_skipping(McuRun& run, ScanState& scan, std::int64_t count) {
  begin_run(run, scan, 0, count);
  run.skips = true;
}

bool can_take_turns(const McuRun& run) {
  const BlocksOfKind& first = run.kinds.front();
  return run.skips ? first.skip != nullptr : first.last_place == 63;
}

HWY_EXPORT(finish);
HWY_EXPORT(take_turns);

void finish(McuRun& run) { HWY_DYNAMIC_DISPATCH(finish)(run); }
void take_turns(McuRun& a, McuRun& b) { HWY_DYNAMIC_DISPATCH(take_turns)(a, b); }

}  // namespace millrace::jpeg
#endif
