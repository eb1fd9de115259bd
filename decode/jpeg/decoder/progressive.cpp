// SPDX-License-Identifier: Apache-2.0
#include "jpeg/decoder/progressive.h"

#include <algorithm>

namespace millrace::jpeg {

bool ProgressiveDecoder::decode(const Frame& frame, const Script& script, const Region& region,
                                int reduction, std::uint8_t* pixels, SeekIndex* index) {
  region_.begin(frame, region, reduction, pixels);
  const McuWindow& window = region_.window();
  const auto known_rows =
      index != nullptr ? static_cast<int>(index->points.size() / script.scans.size()) : 0;
  coefficients_.shape(frame, script.refined_bit_count,
                      {.first_column = window.first_mcu,
                       .end_column = window.last_mcu + 1,
                       .first_row = window.first_mcu_row,
                       .end_row = window.last_mcu_row + 1,
                       .start_row = std::clamp(known_rows - 1, 0, window.first_mcu_row)});
  if (!entropy_.decode(frame, script, coefficients_, index)) return false;
  row_.shape(frame, window.mcus());
  for (int row = window.first_mcu_row; row <= window.last_mcu_row; ++row) {
    coefficients_.copy_row(frame, row, row_);
    region_.add(row_, row);
  }
  return true;
}

bool ProgressiveDecoder::make_index(const Frame& frame, const Script& script, SeekIndex& index) {
  index = {.granularity = IndexPoints::rows};
  coefficients_.shape(frame, script.refined_bit_count,
                      {.first_column = frame.mcus_across - 1,
                       .end_column = frame.mcus_across,
                       .first_row = frame.mcus_down - 1,
                       .end_row = frame.mcus_down});
  return entropy_.decode(frame, script, coefficients_, &index);
}

}  // namespace millrace::jpeg
