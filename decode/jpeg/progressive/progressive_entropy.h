// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "jpeg/frame.h"
#include "jpeg/progressive/band_tables.h"
#include "jpeg/progressive/progressive_coefficients.h"
#include "jpeg/progressive/scan_loops.h"
#include "jpeg/progressive/script.h"
#include "jpeg/scan_bytes.h"

namespace millrace::jpeg {

/// The entropy stage of progressive JPEGs. One thread at a time.
class ProgressiveEntropyDecoder {
 public:
  /// Decodes all scans, up to the last block that the coefficients need. Returns false for data
  /// that no valid progressive JPEG has; libjpeg-turbo must then decode the image.
  bool decode(const Frame& frame, const Script& script, ProgressiveCoefficients& coefficients);

 private:
  /// The MCUs of a scan. A scan of one component has one block in an MCU.
  struct Extent {
    std::size_t across = 0;
    std::size_t all = 0;
    std::size_t needed = 0;
  };

  Extent extent_of(const ProgressiveScan& scan) const;
  bool set_tables(const Script& script, const ProgressiveScan& scan);
  bool decode_scan(const ProgressiveScan& scan);
  bool decode_mcus(const ProgressiveScan& scan, std::size_t across, std::size_t from,
                   std::size_t to);
  bool decode_band(const ProgressiveScan& scan, std::size_t to);
  bool decode_dc_mcus(const ProgressiveScan& scan, std::size_t across, std::size_t from,
                      std::size_t to);
  void place_blocks(const ProgressiveScan& scan, std::size_t row, std::size_t column);

  const Frame* frame_ = nullptr;
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
