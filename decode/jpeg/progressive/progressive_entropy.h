// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "jpeg/frame.h"
#include "jpeg/index.h"
#include "jpeg/progressive/band_tables.h"
#include "jpeg/progressive/progressive_coefficients.h"
#include "jpeg/progressive/scan_loops.h"
#include "jpeg/progressive/script.h"
#include "jpeg/scan_bytes.h"

namespace millrace::jpeg {

/// The entropy stage of progressive JPEGs. One thread at a time.
class ProgressiveEntropyDecoder {
 public:
  /// Decodes all scans, from the start row of the coefficients' box to the last block that they
  /// need. Returns false for data that no valid progressive JPEG has, and for a wrong index;
  /// libjpeg-turbo must then decode the image. An index, if given, must have the start row, unless
  /// this is row 0. Give one only if `can_have_index`. If all data is valid, the points of the
  /// box's later rows are added to the index.
  bool decode(const Frame& frame, const Script& script, ProgressiveCoefficients& coefficients,
              SeekIndex* index = nullptr);

 private:
  /// Numbers of MCUs of a scan, from the start row on. A scan of one component has one block in an
  /// MCU.
  struct Extent {
    std::size_t across = 0;
    /// MCUs of the scan in a row of MCUs of the image.
    std::size_t row = 0;
    std::size_t all = 0;
    std::size_t needed = 0;
  };

  Extent extent_of(const ProgressiveScan& scan) const;
  bool set_tables(const Script& script, const ProgressiveScan& scan);
  bool seek(const ProgressiveScan& scan, const SeekPoint& point);
  bool decode_scan(const ProgressiveScan& scan, std::size_t number);
  bool decode_rows(const ProgressiveScan& scan, std::size_t number, const Extent& extent,
                   std::size_t from, std::size_t to);
  SeekPoint point_in(const ProgressiveScan& scan);
  bool decode_mcus(const ProgressiveScan& scan, std::size_t across, std::size_t from,
                   std::size_t to);
  bool decode_band(const ProgressiveScan& scan, std::size_t to);
  bool decode_dc_mcus(const ProgressiveScan& scan, std::size_t across, std::size_t from,
                      std::size_t to);
  void place_blocks(const ProgressiveScan& scan, std::size_t row, std::size_t column);

  const Frame* frame_ = nullptr;
  std::size_t scans_ = 0;
  const SeekIndex* index_ = nullptr;
  /// Recorded points: those of the rows from `first_recorded_row_` on, in the order of an index.
  std::vector<SeekPoint> recorded_points_;
  int first_recorded_row_ = 0;
  ProgressiveCoefficients* coefficients_ = nullptr;
  ScanBytes bytes_;
  ScanBits bits_;
  std::array<std::uint32_t, 3> predictors_{};
  BandScan band_;
  DcScan dc_;
  std::array<DcTable, 3> dc_tables_;
  FirstTable first_table_;
  RefinementTable refinement_table_;
};

}  // namespace millrace::jpeg
