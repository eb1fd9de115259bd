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
/// bits of `count` are the number of bits in `buffer` that precede `next`.
struct ScanBits {
  std::uint64_t buffer = 0;
  const std::uint8_t* next = nullptr;
  std::uint32_t count = 0;
};

/// The tables and the state for the blocks at the same position in each MCU.
struct BlockKind {
  std::uint32_t* predictor = nullptr;
  const DcTable* dc = nullptr;
  const AcTable* ac = nullptr;
  /// nullptr: skipped blocks are decoded to a scratch block.
  const SkipTable* skip = nullptr;
  /// Coefficients after this index are skipped.
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
  /// Indexed by the order of an MCU's blocks in the file.
  KindsOfMcu kinds;
  int block_count = 0;
  /// Where the next tile's point is recorded; nullptr if points are not recorded. All points have
  /// room. `SeekPoint::bit` does not count the bytes that `ScanBytes` removes.
  SeekPoint* next_point = nullptr;
  /// Column of the next MCU in its row of `row_mcus`. An MCU begins a tile if `column &
  /// tile_mask` is 0. Only used if points are recorded.
  int column = 0;
  int tile_mask = 0;
  int row_mcus = 0;
};

/// A sequence of MCUs that are decoded or skipped, and its progress.
struct McuRun {
  enum class State { open, done, unsound };

  /// `unsound` means data that a valid scan does not have.
  State state = State::done;
  ScanState* scan = nullptr;
  bool skips = false;
  /// Number of blocks that are not open yet, and of MCUs after these blocks. If points are
  /// recorded, the blocks end with the tile. `next` and `next_values`: the next block's kind and
  /// its coefficients.
  std::int64_t blocks = 0;
  std::int64_t later_mcus = 0;
  const BlockKind* next = nullptr;
  std::int16_t* const* next_values = nullptr;
  /// Whether a block is open. If so: its kind, its coefficients, and the zigzag index reached.
  bool in_block = false;
  const BlockKind* kind = nullptr;
  std::int16_t* values = nullptr;
  std::uint32_t zigzag_index = 0;
};

/// Begins to decode the next `count` MCUs of a row into `row`, from the row's MCU number `first`
/// on. They must all lie before the next restart marker. The state and the row must outlive the
/// run.
void begin_decoding(McuRun& run, ScanState& scan, CoefficientRow& row, int first, int count);
/// Begins to skip the next `count` MCUs, which may be in several rows.
void begin_skipping(McuRun& run, ScanState& scan, std::int64_t count);

/// Does the remaining work of an open run.
void finish(McuRun& run);
/// Returns whether a run can be interleaved: all of its coefficients are decoded, or skipped by
/// tables.
bool can_interleave_runs(const McuRun& run);
/// Continues the open runs of two scan states, one symbol of each at a time, until one of them is
/// no longer open. The table look-ups of one run overlap with the work of the other.
void decode_interleaved(McuRun& a, McuRun& b);

}  // namespace millrace::jpeg
