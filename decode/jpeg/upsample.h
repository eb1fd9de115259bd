// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::jpeg {

/// Makes the sums for a row of pixels from the two rows of chroma around it: 3 times the near row
/// plus the far row. May read up to `row_slack` samples, and write as many sums, beyond `count`.
void sum_rows(const std::uint8_t* near_row, const std::uint8_t* far_row, std::int16_t* sums,
              std::size_t count);
/// Makes the sums for chroma at full vertical resolution: copies the row.
void widen_row(const std::uint8_t* row, std::int16_t* sums, std::size_t count);

/// Smooths 2 x `count` samples from `count` sums, as libjpeg-turbo's "fancy" upsampling does: each
/// sample is 3 parts of its own sum and 1 part of the neighbouring sum. Reads `sums[-1]`,
/// `sums[count]` and `row_slack` more. May write 2 x `row_slack` samples after the last one.
/// `of_two_rows` tells whether the sums come from `sum_rows`.
void smooth_across(const std::int16_t* sums, std::uint8_t* samples, std::size_t count,
                   bool of_two_rows);

/// Smooths a row of samples between two rows of chroma of the same width (4:4:0). The upper and the
/// lower row of a pair are rounded in opposite directions.
void smooth_down(const std::uint8_t* near_row, const std::uint8_t* far_row, std::uint8_t* samples,
                 std::size_t count, bool upper);

}  // namespace millrace::jpeg
