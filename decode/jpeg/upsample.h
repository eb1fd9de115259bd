// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::jpeg {

/// Weighs two rows of chroma around a row of pixels: 3 times the near one plus the far one.
/// `near_row` and `far_row` may be read, and `sums` written, `row_slack` beyond `count`.
void sum_rows(const std::uint8_t* near_row, const std::uint8_t* far_row, std::int16_t* sums,
              std::size_t count);
/// Makes the sums of a row of pixels at the height of a row of chroma: that row itself.
void widen_row(const std::uint8_t* row, std::int16_t* sums, std::size_t count);

/// Smooths 2 x `count` samples from `count` sums, as libjpeg-turbo's "fancy" upsampling does: each
/// sample is 3 parts of its own sum and 1 part of the neighbouring sum. Reads `sums[-1]`,
/// `sums[count]` and `row_slack` more. May write 2 x `row_slack` samples after the last one.
/// `of_two_rows`: the sums are those of `sum_rows`.
void smooth_across(const std::int16_t* sums, std::uint8_t* samples, std::size_t count,
                   bool of_two_rows);

/// Smooths a row of samples between two rows of chroma of the same width (4:4:0). The upper and the
/// lower row of a pair are rounded in opposite directions.
void smooth_down(const std::uint8_t* near_row, const std::uint8_t* far_row, std::uint8_t* samples,
                 std::size_t count, bool upper);

}  // namespace millrace::jpeg
