// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::jpeg {

/// Sums of two rows of chroma, between which a row of pixels lies: 3 times the near one and once
/// the far one. `near_row` and `far_row` may be read, and `sums` written, `row_slack` beyond
/// `count`.
void sum_rows(const std::uint8_t* near_row, const std::uint8_t* far_row, std::int16_t* sums,
              std::size_t count);
/// The same of a row that pixels lie on: the row itself.
void widen_row(const std::uint8_t* row, std::int16_t* sums, std::size_t count);

/// Smooths 2 x `count` samples out of `count` sums, as libjpeg-turbo's "fancy" upsampling does:
/// each sample has 3 parts of the sum it lies in and 1 of its neighbour. `sums[-1]` and
/// `sums[count]` are read, and `row_slack` more; twice as many samples may be written.
/// `of_two_rows`: the sums are those of `sum_rows`.
void smooth_across(const std::int16_t* sums, std::uint8_t* samples, std::size_t count,
                   bool of_two_rows);

/// Smooths a row of samples between two rows of chroma that is as wide (4:4:0). The upper row of
/// two is rounded the other way than the lower one.
void smooth_down(const std::uint8_t* near_row, const std::uint8_t* far_row, std::uint8_t* samples,
                 std::size_t count, bool upper);

}  // namespace millrace::jpeg
