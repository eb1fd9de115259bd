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

/// Where in a scan the loops are, and what they use.
struct ScanState {
  ScanBytes bytes;
  ScanBits bits;
  std::array<std::uint32_t, 3> predictors{};
  /// In the order of the file.
  std::array<McuBlock, 6> blocks;
  int block_count = 0;
  std::array<int, 3> across{};
  std::array<int, 3> last_places{};
  /// Where the next tile's point is noted, its bits without those that `ScanBytes` takes out; there
  /// is room. Nullptr: nothing is noted, and `column` is not looked at.
  SeekPoint* noted = nullptr;
  /// Of the next MCU, of `row_mcus` in a row.
  int column = 0;
  int row_mcus = 0;
};

/// Decodes the next `count` MCUs of a row, as those from number `first` of `row` on; all of them
/// lie before a restart marker. False for what no sound scan has.
bool decode_mcus(ScanState& state, int first, int count, CoefficientRow& row);
/// Decodes the next `count` MCUs of two rows in turn, coefficient by coefficient, so that neither
/// waits for its own look-ups alone. Of all components all coefficients; nothing is noted.
bool decode_in_turn(ScanState& first, CoefficientRow& first_row, ScanState& second,
                    CoefficientRow& second_row, int count);
/// Passes over the next `count` MCUs, of any rows, as `decode_mcus` would decode them.
bool skip_mcus(ScanState& state, std::int64_t count);

}  // namespace millrace::jpeg
