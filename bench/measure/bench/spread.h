// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace millrace::cli {

/// Median, minimum and maximum of a sample, and the 95% confidence interval of the true median.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
  double low = 0;
  double high = 0;
};
/// Computes it from at least one value. The interval uses only the order of the values.
Spread spread_of(std::vector<double> values);

}  // namespace millrace::cli
