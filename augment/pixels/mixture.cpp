// SPDX-License-Identifier: Apache-2.0
#include "pixels/mixture.h"

namespace millrace {

void begin_mixture(std::span<const std::uint8_t> levels, float weight, float* sums) {
  for (std::size_t n = 0; n < levels.size(); ++n) sums[n] = weight * static_cast<float>(levels[n]);
}

void add_to_mixture(std::span<const std::uint8_t> levels, float weight, float* sums) {
  for (std::size_t n = 0; n < levels.size(); ++n) sums[n] += weight * static_cast<float>(levels[n]);
}

void end_mixture(const float* sums, std::span<std::uint8_t> levels) {
  for (std::size_t n = 0; n < levels.size(); ++n)
    levels[n] = static_cast<std::uint8_t>(static_cast<int>(sums[n]));
}

}  // namespace millrace
