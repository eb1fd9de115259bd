// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "jpeg/coefficients.h"
#include "jpeg/frame.h"
#include "jpeg/huffman.h"
#include "jpeg/index.h"
#include "jpeg/mcus.h"

namespace millrace::jpeg {

/// The entropy stage. It processes the MCUs of a scan in order: it decodes the coefficients of
/// some, and skips the others, which is faster. A call returns false for data that no valid
/// baseline JPEG has; libjpeg-turbo must then decode the image. One thread at a time.
class EntropyDecoder {
 public:
  /// Begins with the frame's first MCU. The frame must outlive the following calls. `skipped` is
  /// the approximate number of MCUs that will be skipped: tables for skipping are made if they save
  /// time. A component's coefficients after its entry of `last_zigzag_indices` are skipped. An
  /// index, if given, must outlive the following calls, too. `select_mcus` then seeks by its
  /// points, and the points of the tiles after them are recorded. Returns false for bad Huffman
  /// tables.
  bool begin(const Frame& frame, std::int64_t skipped,
             std::array<int, 3> last_zigzag_indices = {63, 63, 63}, SeekIndex* index = nullptr);

  /// Chooses the `mcus` MCUs to decode, from number `first` on, all in one row; `mcus` may be 0.
  /// `first` must not be before the next MCU. The following calls skip the MCUs before `first` and
  /// decode the chosen ones into `row`, which must be shaped for them. A point of the index, or
  /// without an index a restart marker, may shorten the skipping. Returns false if the index has a
  /// bad position, or if the data decoded so far is corrupt.
  bool select_mcus(std::int64_t first, int mcus, CoefficientRow& row);
  /// Returns the next run of the current selection; its state is `open`. The run before must no
  /// longer be open. Returns nullptr if the selection is done or the scan is corrupt.
  McuRun* next_run();
  /// Does the remaining work of the current selection.
  bool finish();
  /// Returns whether `decode_two` may be called for the `mcus` MCUs from `second` on and those
  /// above them. With an index: the index has these MCUs, and no restart marker lies inside a row.
  /// Without an index: each row is a segment between restart markers. In both cases no coefficients
  /// are skipped.
  bool can_decode_two_rows(std::int64_t second, int mcus);
  /// Decodes `mcus` MCUs of a row and of a later one interleaved, which takes less time than one
  /// after the other. The next MCU is then the one after those of the later row.
  bool decode_two(std::int64_t first, std::int64_t second, int mcus, CoefficientRow& first_row,
                  CoefficientRow& second_row);
  /// Returns whether the data decoded so far lies before the scan's end.
  bool is_sound() const { return is_sound(state()); }
  /// Returns whether all MCUs of the image are decoded or skipped, and EOI is the next marker.
  bool is_at_end();
  /// Returns whether stray bytes were skipped between an MCU and the marker after it.
  bool skipped_stray_bytes() const { return skipped_stray_bytes_; }
  /// Adds the recorded points to the index. Call it when all decoded data is known to be valid.
  void extend_index();

 private:
  bool set_tables(const Frame& frame, bool with_skip_tables);
  ScanState& state() { return states_[current_]; }
  const ScanState& state() const { return states_[current_]; }
  static bool is_sound(const ScanState& state);
  bool go_near(std::int64_t mcu, int mcus);
  bool restart();
  void begin_recording(SeekIndex* index);
  /// Returns the index's tiles. There must be an index.
  Tiles tiles() const { return {*frame_, index_->granularity}; }
  std::int64_t known_tiles() const { return static_cast<std::int64_t>(index_->points.size()); }
  void fetch_ahead(std::int64_t tile, std::size_t bytes) const;
  bool seek_tile(std::int64_t tile, std::int64_t end);
  bool seek_segment(std::int64_t segment);
  bool seek(const SeekPoint& point, std::size_t wanted, std::int64_t mcu);
  bool knows_segment(std::int64_t segment);
  bool ends_with(int marker, const ScanState& state);
  bool ends_segment(const ScanState& state, int restart);

  std::array<ScanState, 2> states_;
  std::size_t current_ = 0;
  const Frame* frame_ = nullptr;
  std::int64_t done_ = 0;
  /// The current selection: MCUs up to `skipped_to_` are skipped, the next ones up to `decoded_to_`
  /// are decoded.
  std::int64_t skipped_to_ = 0;
  std::int64_t decoded_to_ = 0;
  CoefficientRow* row_ = nullptr;
  /// The run of the `run_mcus_` MCUs from `done_` on.
  McuRun run_;
  std::int64_t run_mcus_ = 0;
  /// The run of the second row in `decode_two`.
  McuRun second_run_;
  bool skipped_stray_bytes_ = false;
  /// MCUs up to the next restart marker, and the number of that marker.
  std::int64_t before_restart_ = 0;
  int next_restart_ = 0;
  /// Offsets in the scan of the segments between restart markers, as far as they are known.
  std::vector<std::size_t> segments_;
  SeekIndex* index_ = nullptr;
  /// Recorded points: those of the tiles from MCU `first_recorded_mcu_` on.
  std::vector<SeekPoint> recorded_points_;
  SeekPoint* next_point_ = nullptr;
  std::int64_t first_recorded_mcu_ = 0;
  std::array<DcTable, 4> dc_tables_;
  std::array<AcTable, 4> ac_tables_;
  std::array<SkipTable, 4> skip_tables_;
};

}  // namespace millrace::jpeg
