// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace {

/// Number of floats for which each row must have room after its end. Their values are unspecified.
inline constexpr std::size_t blur_slack = 32;

/// Makes `count` sums of values that lie `step` values apart. Each is weights[0] times the value,
/// plus weights[n] times the sum of the values n steps before and after it.
void blur_row(const float* row, std::size_t step, std::span<const float> weights, float* made,
              std::size_t count);
/// Makes the same sums over 2 x half + 1 rows. The middle one, rows[half], holds the value itself.
/// Rounds the sums to levels, halves to even levels.
void blur_column(const float* const* rows, std::span<const float> weights, std::uint8_t* made,
                 std::size_t count);

/// A box of 2 x `radius` + 1 values, with one value of less weight at each end. Weights are in
/// units of 2^-24.
struct BlurBox {
  std::size_t radius;
  std::uint32_t weight;
  std::uint32_t end_weight;
};

/// Makes `count` box sums of RGB pixels' values. The first value lies radius + 1 pixels after
/// `row`, and as many pixels follow the last one. `sums` has room for `count` numbers.
void box_blur_row(const std::uint8_t* row, const BlurBox& box, std::uint32_t* sums,
                  std::uint8_t* made, std::size_t count);
/// Adds the row `add` to the sums of columns, and subtracts the row `take`.
void move_box(const std::uint8_t* add, const std::uint8_t* take, std::uint32_t* sums,
              std::size_t count);
/// Makes a row from the sums of columns and from the rows at both ends.
void box_blur_column(const std::uint32_t* sums, const std::uint8_t* first, const std::uint8_t* last,
                     const BlurBox& box, std::uint8_t* made, std::size_t count);

}  // namespace millrace
