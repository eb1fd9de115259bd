// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "measure/tune/tune_result.h"

namespace millrace::cli {

/// Values of a variable to try.
using Values = std::vector<std::size_t>;

constexpr std::size_t min_prefetch = 2;
constexpr std::size_t ample_prefetch = 8;
constexpr std::size_t max_micro_batches = 16;
/// Shares of images for the device, in percent. The smallest is the cheapest: the device's time
/// belongs to the step.
inline const Values device_percents = {0, 25, 50, 75, 100};

/// `least`, twice `least` ... below `most`, then `most`.
inline Values doubling(std::size_t least, std::size_t most) {
  Values values;
  for (std::size_t value = least; value < most; value *= 2) values.push_back(value);
  values.push_back(most);
  return values;
}

/// Finds the smallest value that fits. `high` and larger values must fit, and the next smaller one
/// of `values` must not. Values closer than a sixteenth are not distinguished.
template <typename Fits>
std::size_t bisect(const Values& values, std::size_t high, Fits fits) {
  const auto at = std::ranges::find(values, high);
  std::size_t low = at == values.begin() ? high : *(at - 1);
  while (high - low > std::max<std::size_t>(1, low / 16)) {
    const std::size_t middle = (low + high) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

inline TuneSetting changed(TuneSetting setting, TuneVariable variable, std::size_t value) {
  if (variable == TuneVariable::workers) setting.workers = static_cast<unsigned>(value);
  if (variable == TuneVariable::prefetch) setting.prefetch = value;
  if (variable == TuneVariable::micro_batches) setting.micro_batches = value;
  if (variable == TuneVariable::batch_size) setting.batch_size = value;
  if (variable == TuneVariable::device_share)
    setting.device_share = static_cast<double>(value) / 100;
  setting.micro_batches = std::min(setting.micro_batches, setting.batch_size);
  return setting;
}

}  // namespace millrace::cli
