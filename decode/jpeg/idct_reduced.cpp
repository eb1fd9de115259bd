// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "jpeg/idct.h"

namespace millrace::jpeg {
namespace {

/// The contribution of frequency u to sample x, scaled by 2^13. It is 1 for u = 0, and otherwise
/// sqrt(2) cos((2 x + 1) u pi / (2 side)).
template <int side>
constexpr std::array<std::array<int, side>, side> basis();

template <>
constexpr std::array<std::array<int, 2>, 2> basis<2>() {
  return {{{8192, 8192}, {8192, -8192}}};
}

template <>
constexpr std::array<std::array<int, 4>, 4> basis<4>() {
  return {{{8192, 8192, 8192, 8192},
           {10703, 4433, -4433, -10703},
           {8192, -8192, -8192, 8192},
           {4433, -10703, 10703, -4433}}};
}

template <int side>
void transform(const std::int16_t* block, const std::int16_t* steps, std::uint8_t* samples,
               std::size_t stride) {
  constexpr auto factors = basis<side>();
  constexpr std::int64_t half_first = 1 << (idct::first_shift - 1);
  constexpr std::int64_t half_second = 1 << (idct::second_shift - 1);
  // The products are of 16-bit values and 8-bit steps. Corrupt data needs sums above 32 bits.
  std::array<std::array<std::int64_t, side>, side> columns{};
  for (std::size_t u = 0; u < side; ++u)
    for (std::size_t y = 0; y < side; ++y) {
      std::int64_t sum = half_first;
      for (std::size_t v = 0; v < side; ++v) {
        const std::size_t at = v * BlockGroup::row_values + u;
        sum += std::int64_t{block[at]} * steps[at] * factors[v][y];
      }
      columns[y][u] = sum >> idct::first_shift;
    }
  for (std::size_t y = 0; y < side; ++y)
    for (std::size_t x = 0; x < side; ++x) {
      std::int64_t sum = half_second;
      for (std::size_t u = 0; u < side; ++u) sum += columns[y][u] * factors[u][x];
      samples[y * stride + x] = static_cast<std::uint8_t>(
          std::clamp<std::int64_t>((sum >> idct::second_shift) + 128, 0, 255));
    }
}

std::uint8_t mean(std::int16_t dc, std::int16_t step) {
  return static_cast<std::uint8_t>(std::clamp(((dc * step + 4) >> 3) + 128, 0, 255));
}

}  // namespace

void inverse_transform_reduced(const BlockGroup* groups, int count, const StepsOfGroup& steps,
                               int side, std::uint8_t* samples, std::size_t stride) {
  for (; count > 0; --count, ++groups)
    for (int block = 0; block < BlockGroup::blocks; ++block, samples += side) {
      const std::int16_t* values = groups->values.data() + block * block_side;
      if (side == 4)
        transform<4>(values, steps.values(), samples, stride);
      else if (side == 2)
        transform<2>(values, steps.values(), samples, stride);
      else
        *samples = mean(values[0], steps.values()[0]);
    }
}

}  // namespace millrace::jpeg
