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

/// The entropy stage: goes over the MCUs of a scan in their order, and decodes the coefficients of
/// some, or only as much as it takes to pass over them. Each call that returns false found
/// something that no sound baseline JPEG has; libjpeg-turbo then says what becomes of it. One
/// thread at a time.
class EntropyDecoder {
 public:
  /// Begins with the frame's first MCU; the frame must outlive the calls that follow. `skipped` is
  /// about how many MCUs will be passed over: tables for that are made if they pay. Coefficients of
  /// a component behind its last place, in the zigzag order, are passed over. With an index, which
  /// must outlive the calls too, `aim` seeks where it has points, and tiles behind its last one
  /// are noted. False for bad Huffman tables.
  bool begin(const Frame& frame, std::int64_t skipped,
             std::array<int, 3> last_places = {63, 63, 63}, SeekIndex* index = nullptr);

  /// Aims at the `mcus` MCUs, none or some of one row, from number `first` on, which is at or
  /// behind the next one. What follows passes over those between, unless the index or, without one,
  /// a restart marker lets it begin further on, and decodes them into `row`, which must be shaped
  /// for them. False where the index points nowhere, or what was decoded is not sound.
  bool aim(std::int64_t first, int mcus, CoefficientRow& row);
  /// The run that comes next of what is aimed at, open, when the one before is not open any more.
  /// Nullptr if all is done, or the scan is not sound.
  McuRun* next_run();
  /// Does all that is left of what is aimed at.
  bool finish();
  /// Whether `decode_two` may be called for the `mcus` MCUs from `second` on and as many of the row
  /// before: the index has them, and no row has a restart marker within it; or, without an index,
  /// each row is a segment between restart markers. All coefficients must be wanted.
  bool can_take_two(std::int64_t second, int mcus);
  /// Decodes `mcus` MCUs of a row and of a later one, both at once, which takes less time than one
  /// after the other. Goes on behind those of the later row.
  bool decode_two(std::int64_t first, std::int64_t second, int mcus, CoefficientRow& first_row,
                  CoefficientRow& second_row);
  /// Whether what was decoded so far lies before the scan's end.
  bool is_sound() const { return is_sound(state()); }
  /// Whether all of the image's MCUs are decoded or passed over, and EOI is the next marker.
  bool is_at_end();
  /// Whether stray bytes were skipped between an MCU and the marker behind it.
  bool skipped_stray_bytes() const { return skipped_stray_bytes_; }
  /// Adds what was noted to the index, once all that was decoded is known to be sound.
  void extend_index();

 private:
  bool set_tables(const Frame& frame, bool with_skip_tables);
  ScanState& state() { return states_[current_]; }
  const ScanState& state() const { return states_[current_]; }
  static bool is_sound(const ScanState& state);
  bool go_near(std::int64_t mcu, int mcus);
  bool restart();
  void begin_noting(SeekIndex* index);
  /// Of the index, which there is.
  Tiles tiles() const { return {*frame_, index_->of}; }
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
  /// What is aimed at: MCUs up to `skipped_to_` are passed over, those up to `decoded_to_` decoded.
  std::int64_t skipped_to_ = 0;
  std::int64_t decoded_to_ = 0;
  CoefficientRow* row_ = nullptr;
  /// Of the MCUs from `done_` on; there are as many as `run_mcus_`.
  McuRun run_;
  std::int64_t run_mcus_ = 0;
  /// The other one of two rows.
  McuRun second_run_;
  bool skipped_stray_bytes_ = false;
  /// MCUs up to the next restart marker, and which one that is.
  std::int64_t before_restart_ = 0;
  int next_restart_ = 0;
  /// Where in the scan the segments between restart markers begin, as far as was looked.
  std::vector<std::size_t> segments_;
  SeekIndex* index_ = nullptr;
  /// The points of the tiles from MCU `noted_from_` on.
  std::vector<SeekPoint> noted_;
  SeekPoint* next_noted_ = nullptr;
  std::int64_t noted_from_ = 0;
  std::array<DcTable, 4> dc_tables_;
  std::array<AcTable, 4> ac_tables_;
  std::array<SkipTable, 4> skip_tables_;
};

}  // namespace millrace::jpeg
