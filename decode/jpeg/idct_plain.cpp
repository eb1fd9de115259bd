// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>

#include "jpeg/idct.h"

namespace millrace::jpeg {
namespace {

/// Returns the low half of a sum or a product, as a 16-bit lane holds it.
std::int16_t wrapped(int value) { return static_cast<std::int16_t>(value); }

std::int16_t saturated(int value) {
  using Limits = std::numeric_limits<std::int16_t>;
  return static_cast<std::int16_t>(std::clamp<int>(value, Limits::min(), Limits::max()));
}

/// Adds two products. The sum wraps around as a 32-bit lane does.
int products(int a, int by, int b, int times) {
  return static_cast<int>(static_cast<unsigned>(a) * static_cast<unsigned>(by) +
                          static_cast<unsigned>(b) * static_cast<unsigned>(times));
}
int sum(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}
int difference(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) - static_cast<unsigned>(b));
}

/// Transforms eight values, `step` apart, in place.
void pass(std::int16_t* values, std::size_t step, int shift) {
  using namespace idct;
  const auto in = [&](std::size_t n) { return static_cast<int>(values[n * step]); };
  const int round = 1 << (shift - 1);
  const int even0 = products(wrapped(in(0) + in(4)), 1 << scale_bits, 0, 0);
  const int even1 = products(wrapped(in(0) - in(4)), 1 << scale_bits, 0, 0);
  const int even2 = products(in(2), even2_by_2, in(6), even2_by_6);
  const int even3 = products(in(2), even3_by_2, in(6), even3_by_6);
  const int both73 = wrapped(in(7) + in(3));
  const int both51 = wrapped(in(5) + in(1));
  const int turn3 = products(both73, turn3_by_73, both51, turn3_by_51);
  const int turn4 = products(both73, turn4_by_73, both51, turn4_by_51);
  const std::array even{sum(even0, even3), sum(even1, even2), difference(even1, even2),
                        difference(even0, even3)};
  const std::array odd{sum(turn4, products(in(7), odd3_by_7, in(1), odd3_by_1)),
                       sum(turn3, products(in(5), odd2_by_5, in(3), odd2_by_3)),
                       sum(turn4, products(in(5), odd1_by_5, in(3), odd1_by_3)),
                       sum(turn3, products(in(7), odd0_by_7, in(1), odd0_by_1))};
  for (std::size_t n = 0; n < 4; ++n) {
    const int rounded = sum(even[n], round);
    values[n * step] = saturated(sum(rounded, odd[n]) >> shift);
    values[(7 - n) * step] = saturated(difference(rounded, odd[n]) >> shift);
  }
}

}  // namespace

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
      pass(values.data() + column, 8, idct::first_shift);
    else  // libjpeg-turbo's short cut
      for (std::size_t row = 8; row-- > 0;)
        values[row * 8 + column] = wrapped(values[column] * (1 << idct::kept_bits));
  }
  for (std::size_t row = 0; row < 8; ++row) {
    pass(values.data() + row * 8, 1, idct::second_shift);
    for (std::size_t column = 0; column < 8; ++column)
      samples[row * stride + column] =
          static_cast<std::uint8_t>(std::clamp(values[row * 8 + column] + 128, 0, 255));
  }
}

}  // namespace millrace::jpeg
