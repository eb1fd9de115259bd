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

/// Bits of a scan: those of `buffer`, from the highest on, then those from `next` on. The low six
/// bits of `count` are the number of bits that `buffer` is sure to have.
struct ScanBits {
  std::uint64_t buffer = 0;
  const std::uint8_t* next = nullptr;
  std::uint32_t count = 0;
};

/// The tables and the state for the blocks at one place of each MCU.
struct BlockKind {
  std::uint32_t* predictor = nullptr;
  const DcTable* dc = nullptr;
  const AcTable* ac = nullptr;
  /// nullptr: skipped blocks are decoded to a scratch block.
  const SkipTable* skip = nullptr;
  /// Coefficients after this place are skipped.
  std::uint32_t last_zigzag_index = 0;
  /// The kind of the next block, in the same MCU or the next one.
  const BlockKind* next = nullptr;
};

/// The kinds of the blocks of an MCU; an MCU has at most 6 blocks.
using KindsOfMcu = std::array<BlockKind, 6>;

/// Position of the loops in a scan, and the data that they use.
struct ScanState {
  ScanBytes bytes;
  ScanBits bits;
  std::array<std::uint32_t, 3> predictors{};
  /// In the order of the blocks in the file.
  KindsOfMcu kinds;
  int block_count = 0;
  /// Place for the next tile's point; nullptr if points are not noted. There is room for all of
  /// them. The point's bits do not count the bytes that `ScanBytes` removes.
  SeekPoint* noted = nullptr;
  /// Column of the next MCU in its row of `row_mcus`. An MCU begins a tile if `column` has none of
  /// the bits `within_tile`. Only used if points are noted.
  int column = 0;
  int within_tile = 0;
  int row_mcus = 0;
};

/// A sequence of MCUs that are decoded or skipped, and its progress.
struct McuRun {
  enum class State { open, done, unsound };

  /// `unsound` means data that a valid scan does not have.
  State state = State::done;
  ScanState* scan = nullptr;
  bool skips = false;
  /// Blocks that are not open yet, and the MCUs after them. If points are noted, the blocks end
  /// with the tile. Then the next block's kind and the place of its coefficients.
  std::int64_t blocks = 0;
  std::int64_t later_mcus = 0;
  const BlockKind* next = nullptr;
  std::int16_t* const* next_values = nullptr;
  /// Whether a block is open. If so, its kind, the place of its coefficients, and its progress.
  bool in_block = false;
  const BlockKind* kind = nullptr;
  std::int16_t* values = nullptr;
  std::uint32_t zigzag_index = 0;
};

/// Begins to decode the next `count` MCUs of a row into `row`, from its MCU number `first` on. All
/// of them must lie before a restart marker. The state and the row must outlive the run.
void begin_decoding(McuRun& run, ScanState& scan, CoefficientRow& row, int first, int count);
/// Begins to skip the next `count` MCUs, of any rows.
void begin_skipping(McuRun& run, ScanState& scan, std::int64_t count);

/// Does the remaining work of an open run.
void finish(McuRun& run);
/// Returns whether a run can be interleaved: all of its coefficients are decoded, or skipped by
/// tables.
bool can_interleave_runs(const McuRun& run);
/// Continues the open runs of two scan states, one symbol of each at a time, until one of them is
/// not open any more. So neither waits for its own table look-ups alone.
void decode_interleaved(McuRun& a, McuRun& b);

}  // namespace millrace::jpeg
