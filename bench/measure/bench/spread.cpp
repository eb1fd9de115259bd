// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/spread.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace millrace::cli {

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t count = values.size();
  const auto below = [](double number) { return static_cast<std::size_t>(std::max(number, 0.0)); };
  // Rank of the bounds of the median's 95% interval, by the normal approximation of the binomial
  // distribution.
  const auto all = static_cast<double>(count);
  const std::size_t outside = below((all - 1 - 1.96 * std::sqrt(all)) / 2);
  return {.median = std::midpoint(values[(count - 1) / 2], values[count / 2]),
          .min = values.front(),
          .max = values.back(),
          .low = values[outside],
          .high = values[count - 1 - outside]};
}

}  // namespace millrace::cli
