// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of the entropy stage.
#pragma once

#include <array>
#include <cstdint>

#include "jpeg/coefficients.h"
#include "jpeg/huffman.h"
#include "jpeg/index.h"
#include "jpeg/scan_bytes.h"

namespace millrace::jpeg {

/// Bits of a scan: those of `buffer`, from the highest on, of which the low six bits of `count` say
/// how many are surely there, then those from `next` on.
struct ScanBits {
  std::uint64_t buffer = 0;
  const std::uint8_t* next = nullptr;
  std::uint32_t count = 0;
};

/// What the blocks at one place of each MCU are decoded by.
struct BlockKind {
  std::uint32_t* predictor = nullptr;
  const DcTable* dc = nullptr;
  const AcTable* ac = nullptr;
  /// Nullptr: blocks are passed over as they are decoded.
  const SkipTable* skip = nullptr;
  /// Coefficients behind this place are passed over.
  std::uint32_t last_place = 0;
  /// Of the block that follows, in the same MCU or the next one.
  const BlockKind* next = nullptr;
};

/// The kinds of the blocks of an MCU, of which each has at most so many.
using KindsOfMcu = std::array<BlockKind, 6>;

/// Where in a scan the loops are, and what they use.
struct ScanState {
  ScanBytes bytes;
  ScanBits bits;
  std::array<std::uint32_t, 3> predictors{};
  /// In the order of the file.
  KindsOfMcu kinds;
  int block_count = 0;
  /// Where the next tile's point is noted, its bits without those that `ScanBytes` takes out; there
  /// is room. Nullptr: nothing is noted, and what follows is not looked at.
  SeekPoint* noted = nullptr;
  /// Of the next MCU, of `row_mcus` in a row. Those that begin a tile have none of the bits
  /// `within_tile`.
  int column = 0;
  int within_tile = 0;
  int row_mcus = 0;
};

/// MCUs that are decoded or passed over, one after the other, and how far that has come.
struct McuRun {
  enum class State { open, done, unsound };

  /// `unsound` for what no sound scan has.
  State state = State::done;
  ScanState* scan = nullptr;
  bool skips = false;
  /// Blocks that are not opened yet, up to the next tile if points are noted, and the MCUs behind
  /// them; the next block's kind, and where it is decoded to.
  std::int64_t blocks = 0;
  std::int64_t later_mcus = 0;
  const BlockKind* next = nullptr;
  std::int16_t* const* next_values = nullptr;
  /// Whether a block is open: then its kind, where its coefficients go, and how far it has come.
  bool in_block = false;
  const BlockKind* kind = nullptr;
  std::int16_t* values = nullptr;
  std::uint32_t place = 0;
};

/// Begins to decode the next `count` MCUs of a row, as those from number `first` of `row` on; all
/// of them lie before a restart marker. State and row must outlive the run.
void begin_decoding(McuRun& run, ScanState& scan, CoefficientRow& row, int first, int count);
/// Begins to pass over the next `count` MCUs, of any rows, as they would be decoded.
void begin_skipping(McuRun& run, ScanState& scan, std::int64_t count);

/// Does what is left of an open run.
void finish(McuRun& run);
/// Whether a run can take turns: all coefficients are decoded, or passed over by tables.
bool can_take_turns(const McuRun& run);
/// Goes on with the open runs of two scans' states in turn, symbol by symbol, so that neither waits
/// for its own look-ups alone, until one of them is not open any more.
void take_turns(McuRun& a, McuRun& b);

}  // namespace millrace::jpeg
