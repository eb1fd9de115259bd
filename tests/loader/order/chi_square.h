// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

namespace millrace::testing {

/// Pearson's statistic against equal expected counts.
inline double chi_square(std::span<const std::uint64_t> counts) {
  double total = 0;
  for (const std::uint64_t count : counts) total += static_cast<double>(count);
  const double expected = total / static_cast<double>(counts.size());
  double sum = 0;
  for (const std::uint64_t count : counts)
    sum += std::pow(static_cast<double>(count) - expected, 2) / expected;
  return sum;
}

/// Limit that the statistic of a uniform source exceeds once in about 30,000 times. Source: Wilson,
/// Hilferty, "The distribution of chi-square", 1931.
inline double chi_square_limit(double degrees_of_freedom) {
  const double part = 2 / (9 * degrees_of_freedom);
  return degrees_of_freedom * std::pow(1 - part + 4 * std::sqrt(part), 3);
}

}  // namespace millrace::testing
