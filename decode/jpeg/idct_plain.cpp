// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/block_arithmetic.h>

#include <array>

#include "jpeg/idct.h"

namespace millrace::jpeg {

void inverse_transform_plain(const std::int16_t* block, const std::int16_t* steps,
                             std::uint8_t* samples, std::size_t stride) {
  std::array<std::int16_t, 64> values;
  bool below_first_row = false;
  for (std::size_t row = 0; row < 8; ++row)
    for (std::size_t column = 0; column < 8; ++column) {
      const std::size_t from = row * BlockGroup::row_values + column;
      values[row * 8 + column] = wrapped(block[from] * steps[from]);
      below_first_row = below_first_row || (row > 0 && block[from] != 0);
    }
  for (std::size_t column = 0; column < 8; ++column) {
    if (below_first_row)
      transform_eight(values.data() + column, 8, idct::first_shift);
    else  // libjpeg-turbo's shortcut
      for (std::size_t row = 8; row-- > 0;)
        values[row * 8 + column] = wrapped(values[column] * (1 << idct::kept_bits));
  }
  for (std::size_t row = 0; row < 8; ++row) {
    transform_eight(values.data() + row * 8, 1, idct::second_shift);
    for (std::size_t column = 0; column < 8; ++column)
      samples[row * stride + column] = clamped(values[row * 8 + column] + 128);
  }
}

}  // namespace millrace::jpeg
