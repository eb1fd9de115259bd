// SPDX-License-Identifier: Apache-2.0
#include "jpeg/decoder/progressive.h"

namespace millrace::jpeg {

bool ProgressiveDecoder::decode(const Frame& frame, const Script& script, const Region& region,
                                int reduction, std::uint8_t* pixels) {
  region_.begin(frame, region, reduction, pixels);
  const McuWindow& window = region_.window();
  coefficients_.shape(frame, script.refined_bits,
                      {.first_column = window.first_mcu,
                       .end_column = window.last_mcu + 1,
                       .first_row = window.first_mcu_row,
                       .end_row = window.last_mcu_row + 1});
  if (!entropy_.decode(frame, script, coefficients_)) return false;
  row_.shape(frame, window.mcus());
  for (int row = window.first_mcu_row; row <= window.last_mcu_row; ++row) {
    coefficients_.copy_row(frame, row, row_);
    region_.add(row_, row);
  }
  return true;
}

}  // namespace millrace::jpeg
