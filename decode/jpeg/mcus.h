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

/// A block of an MCU.
struct McuBlock {
  int component = 0;
  int x = 0;
  int y = 0;
  const DcTable* dc = nullptr;
  const AcTable* ac = nullptr;
  /// Nullptr: blocks are passed over as they are decoded.
  const SkipTable* skip = nullptr;
};

/// The blocks of an MCU, of which each has at most so many.
template <typename Block>
using OfMcu = std::array<Block, 6>;

/// Where in a scan the loops are, and what they use.
struct ScanState {
  ScanBytes bytes;
  ScanBits bits;
  std::array<std::uint32_t, 3> predictors{};
  /// In the order of the file.
  OfMcu<McuBlock> blocks;
  int block_count = 0;
  std::array<int, 3> across{};
  std::array<int, 3> last_places{};
  /// Where the next tile's point is noted, its bits without those that `ScanBytes` takes out; there
  /// is room. Nullptr: nothing is noted, and `column` is not looked at.
  SeekPoint* noted = nullptr;
  /// Of the next MCU, of `row_mcus` in a row. Those that begin a tile have none of these bits.
  int column = 0;
  int within_tile = 0;
  int row_mcus = 0;
};

/// Where the blocks of one kind of each MCU go, and what they are decoded by.
struct BlocksOfKind {
  BlockGroup* groups = nullptr;
  unsigned across = 0;
  unsigned x = 0;
  std::uint32_t* predictor = nullptr;
  const DcTable* dc = nullptr;
  const AcTable* ac = nullptr;
  const SkipTable* skip = nullptr;
  int last_place = 0;
};

/// A block that is being decoded; the place of its last coefficient goes to `last`.
struct OpenBlock {
  std::int16_t* values = nullptr;
  std::uint8_t* last = nullptr;
};

/// MCUs that are decoded or passed over, one after the other, and how far that has come.
struct McuRun {
  enum class State { open, done, unsound };

  /// `unsound` for what no sound scan has.
  State state = State::done;
  ScanState* scan = nullptr;
  bool skips = false;
  OfMcu<BlocksOfKind> kinds;
  std::int64_t mcu = 0;
  std::int64_t end = 0;
  /// The block's number in its MCU, and whether it is open: then how far it has come.
  int number = 0;
  bool in_block = false;
  OpenBlock block;
  int place = 0;
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
