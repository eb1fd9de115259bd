// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace millrace::cli {

/// A median with the smallest and largest value it is of, and the 95% interval in which that of all
/// possible ones lies.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
  double low = 0;
  double high = 0;
};
/// Of at least one value. The interval follows from the values' order alone.
Spread spread_of(std::vector<double> values);

}  // namespace millrace::cli
