// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each instruction set (Highway's foreach_target.h), since newer ones have faster
// shifts. Shifts limit the speed: a value can be decoded only after a shift by the previous value's
// length. The targets from AVX2 on have these shifts, and AVX-512 adds nothing.
#include "jpeg/mcus.h"

#include <algorithm>
#include <type_traits>

// A better target has a lower bit. So this disables all targets with AVX-512, whatever their names.
#define HWY_DISABLED_TARGETS (HWY_AVX2 - 1)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "jpeg/mcus.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "jpeg/blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::jpeg {
namespace HWY_NAMESPACE {
namespace {

/// Begins the next MCUs of one tile, and records the tile's point if they begin the tile. `bit` is
/// the position of the first MCU. Returns the number of blocks of these MCUs; 0 after the last MCU.
HWY_NOINLINE std::int64_t begin_tile(McuRun& run, std::uint64_t bit) {
  if (run.later_mcus == 0) return 0;
  ScanState& scan = *run.scan;
  const int mcu_in_tile = scan.column & scan.tile_mask;
  if (mcu_in_tile == 0) {
    SeekPoint& point = *scan.next_point++;
    point.bit = bit;
    for (std::size_t n = 0; n < point.predictors.size(); ++n)
      point.predictors[n] = static_cast<std::uint16_t>(scan.predictors[n]);
  }
  const int of_tile = 1 + std::min(scan.tile_mask - mcu_in_tile, scan.row_mcus - scan.column - 1);
  const std::int64_t mcus = std::min<std::int64_t>(of_tile, run.later_mcus);
  run.later_mcus -= mcus;
  scan.column += static_cast<int>(mcus);
  if (scan.column == scan.row_mcus) scan.column = 0;
  return mcus * scan.block_count;
}

/// A run in progress, with its state in local variables.
template <bool skips>
struct Lane {
  McuRun& run;
  ScanState& scan = *run.scan;
  ScanBits bits = scan.bits;
  std::int64_t blocks = run.blocks;
  std::int16_t* const* next_values = run.next_values;
  const BlockKind* next = run.next;
  /// Loaded before the block is opened, so that opening does not wait for it.
  const DcTable* next_dc = next->dc;
  /// State of the open block.
  const BlockKind* kind = run.kind;
  std::conditional_t<skips, const SkipTable*, const AcTable*> table = nullptr;
  std::int16_t* values = run.values;
  std::uint32_t zigzag_index = run.zigzag_index;
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
  /// Opens the next block and decodes its DC coefficient. Returns false after the last block or for
  /// corrupt data.
  HWY_INLINE bool open() {
    if (blocks == 0) [[unlikely]] {
      blocks = begin_tile(run, 8 * scan.bytes.place_of(bits.next) - (bits.count & 63));
      if (blocks == 0) return ends(McuRun::State::done);
    }
    if (!ensure(scan.bytes, bits)) return ends(McuRun::State::unsound);
    refill(bits);
    std::int32_t difference = 0;
    if (!take_difference(bits, *next_dc, difference)) return ends(McuRun::State::unsound);
    kind = next;
    use_tables();
    next = kind->next;
    next_dc = next->dc;
    --blocks;
    const std::uint32_t value = *kind->predictor + static_cast<std::uint32_t>(difference);
    *kind->predictor = value;
    if constexpr (!skips) {
      values = *next_values++;
      values[0] = static_cast<std::int16_t>(value);
    }
    zigzag_index = 0;
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
      return skip_symbols(bits, *table, zigzag_index);
    else
      return take_coefficient(bits, *table, values, zigzag_index);
  }
  /// Decodes or skips a symbol that `take` does not handle. At a block's end it opens the next one.
  /// Returns false if the run has ended; its state says why.
  HWY_INLINE bool take_rare() {
    BlockStep step;
    if constexpr (skips)
      step = skip_other(bits, *kind->ac, *table, zigzag_index);
    else
      step = take_other(bits, *table, values, zigzag_index);
    if (step == BlockStep::more) return true;
    return step == BlockStep::end_of_block ? open() : ends(McuRun::State::unsound);
  }
  /// Decodes or skips the rest of the open block. Returns false if it is corrupt.
  HWY_INLINE bool end_block() {
    if constexpr (skips) {
      if (table != nullptr) return skip_coefficients(bits, *kind->ac, *table, zigzag_index);
      BlockGroup unused;
      return decode_coefficients(bits, *kind->ac, unused.values.data(), zigzag_index);
    } else {
      if (kind->last_zigzag_index == last_zigzag_index)
        return decode_coefficients(bits, *table, values, zigzag_index);
      return decode_first_coefficients(bits, *table, *kind->skip, kind->last_zigzag_index, values);
    }
  }
  HWY_INLINE void store_state() {
    scan.bits = bits;
    run.blocks = blocks;
    run.next = next;
    run.next_values = next_values;
    run.in_block = in_block;
    run.kind = kind;
    run.values = values;
    run.zigzag_index = zigzag_index;
  }
};

template <bool skips>
HWY_NOINLINE void finish_run(McuRun& run) {
  Lane<skips> lane{run};
  bool open = lane.begin();
  while (open) open = lane.end_block() ? lane.open() : lane.ends(McuRun::State::unsound);
  lane.store_state();
}

void finish(McuRun& run) { run.skips ? finish_run<true>(run) : finish_run<false>(run); }

template <bool a_skips, bool b_skips>
HWY_NOINLINE void decode_interleaved_of(McuRun& run_a, McuRun& run_b) {
  Lane<a_skips> a{run_a};
  Lane<b_skips> b{run_b};
  // If run `a` cannot continue, run `b` stays unchanged.
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
          both = a.take_rare() && (b.take() || b.take_rare());
          break;
        case Waits::b:
          both = b.take_rare();
          break;
        case Waits::none:
          break;
      }
    }
  }
  a.store_state();
  b.store_state();
}

void decode_interleaved(McuRun& a, McuRun& b) {
  if (a.skips)
    b.skips ? decode_interleaved_of<true, true>(a, b) : decode_interleaved_of<true, false>(a, b);
  else
    b.skips ? decode_interleaved_of<false, true>(a, b) : decode_interleaved_of<false, false>(a, b);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::jpeg
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::jpeg {
namespace {

void begin_run(McuRun& run, ScanState& scan, std::int64_t mcus) {
  run.state = McuRun::State::open;
  run.scan = &scan;
  const bool notes = scan.next_point != nullptr;
  run.blocks = notes ? 0 : mcus * scan.block_count;
  run.later_mcus = notes ? mcus : 0;
  run.next = scan.kinds.data();
  run.in_block = false;
}

}  // namespace

void begin_decoding(McuRun& run, ScanState& scan, CoefficientRow& row, int first, int count) {
  begin_run(run, scan, count);
  run.skips = false;
  run.next_values =
      row.blocks_in_file_order() + static_cast<std::ptrdiff_t>(first) * scan.block_count;
}

void begin_skipping(McuRun& run, ScanState& scan, std::int64_t count) {
  begin_run(run, scan, count);
  run.skips = true;
}

bool can_interleave_runs(const McuRun& run) {
  const BlockKind& first = run.scan->kinds.front();
  return run.skips ? first.skip != nullptr : first.last_zigzag_index == 63;
}

HWY_EXPORT(finish);
HWY_EXPORT(decode_interleaved);

void finish(McuRun& run) { HWY_DYNAMIC_DISPATCH(finish)(run); }
void decode_interleaved(McuRun& a, McuRun& b) { HWY_DYNAMIC_DISPATCH(decode_interleaved)(a, b); }

}  // namespace millrace::jpeg
#endif
