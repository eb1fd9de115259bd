// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace {

/// Rows of floats have room for this many more, whatever is in them.
inline constexpr std::size_t blur_slack = 32;

/// `made` of `count` values and those beside them, `step` values apart: weights[0] times the value,
/// and weights[n] times the sum of those n steps before and behind it.
void blur_row(const float* row, std::size_t step, std::span<const float> weights, float* made,
              std::size_t count);
/// The same of values in other rows: rows[half] holds the value, of 2 x half + 1 of them. Rounded
/// to levels, halves to even ones.
void blur_column(const float* const* rows, std::span<const float> weights, std::uint8_t* made,
                 std::size_t count);

/// A box of 2 x `radius` + 1 values with one more of less weight at each end; weights are shares of
/// 2^24.
struct BlurBox {
  std::size_t radius;
  std::uint32_t weight;
  std::uint32_t end_weight;
};

/// `made` of `count` values of RGB pixels that begin radius + 1 pixels behind `row`, where as many
/// follow. `sums` has room for `count` numbers.
void box_blur_row(const std::uint8_t* row, const BlurBox& box, std::uint32_t* sums,
                  std::uint8_t* made, std::size_t count);
/// Adds a row to the sums of columns, and takes one away.
void move_box(const std::uint8_t* add, const std::uint8_t* take, std::uint32_t* sums,
              std::size_t count);
/// `made` of the sums of columns, and of the rows at both ends.
void box_blur_column(const std::uint32_t* sums, const std::uint8_t* first, const std::uint8_t* last,
                     const BlurBox& box, std::uint8_t* made, std::size_t count);

}  // namespace millrace
