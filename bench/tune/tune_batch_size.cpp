// SPDX-License-Identifier: Apache-2.0
#include "tune/tune_batch_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tune/tune_text.h"

namespace millrace::cli {

BatchSizeSearch::BatchSizeSearch(const TuneGoal& goal, Measurements& measurements, std::size_t base,
                                 bool feeds)
    : goal_(goal), measurements_(measurements), base_(base), feeds_(feeds) {}

std::size_t BatchSizeSearch::point_with(std::size_t batch_size) {
  TuneSetting setting = measurements_.setting(base_);
  setting.batch_size = batch_size;
  setting.micro_batches = std::min(setting.micro_batches, batch_size);
  return measurements_.point(setting);
}

std::string BatchSizeSearch::misfit(std::size_t batch_size) {
  const auto ratio = static_cast<double>(batch_size) / static_cast<double>(goal_.batch_size);
  const double memory = ratio * static_cast<double>(measurements_.summary(base_).memory_bytes);
  const double limit =
      static_cast<double>(std::min(goal_.most_memory_bytes, goal_.memory_bytes.value_or(SIZE_MAX)));
  // Known without a run; the scratch does not grow with the batch, so a little above may still fit.
  if (memory > 1.5 * limit)
    return fmt::format("{} samples take about {:.0f} MB", batch_size, memory / 1e6);
  const std::size_t point = point_with(batch_size);
  const std::array one = {point};
  if (!measurements_.run_in_turn(one, few_runs, since_) &&
      measurements_.summary(point, since_).runs == 0)
    return fmt::format("{} samples could not be tried in time", batch_size);
  if (std::find(tried_.begin(), tried_.end(), point) == tried_.end()) tried_.push_back(point);
  return misfit_of(point);
}

std::string BatchSizeSearch::misfit_of(std::size_t point) {
  const std::size_t batch_size = measurements_.setting(point).batch_size;
  const TuneSummary summary = measurements_.summary(point, since_);
  if (goal_.p99_ms && summary.batch_p99_ms > *goal_.p99_ms)
    return fmt::format("{} samples take {:.1f} ms at the 99th percentile", batch_size,
                       summary.batch_p99_ms);
  if (summary.memory_bytes >
      std::min(goal_.most_memory_bytes, goal_.memory_bytes.value_or(SIZE_MAX)))
    return fmt::format("{} samples take {:.0f} MB", batch_size,
                       static_cast<double>(summary.memory_bytes) / 1e6);
  if (feeds_ && measurements_.judge(point) != Feeds::yes)
    return fmt::format("{} samples do not feed the step", batch_size);
  if (!feeds_ && point != base_ && measurements_.beats(base_, point, since_))
    return fmt::format("{} samples are made at a lower rate", batch_size);
  return {};
}

void BatchSizeSearch::try_sizes_within_limits() {
  std::size_t low = 0;
  std::size_t high = 0;
  std::size_t size = goal_.batch_size;
  limit_ = misfit(size);
  if (limit_.empty()) {
    low = size;
    while (high == 0 && low < goal_.most_batch_size) {
      size = std::min(2 * low, goal_.most_batch_size);
      limit_ = misfit(size);
      (limit_.empty() ? low : high) = size;
    }
  } else {
    high = size;
    while (low == 0 && high > 1 && !measurements_.refused()) {
      size = high / 2;
      std::string problem = misfit(size);
      if (problem.empty()) {
        low = size;
      } else {
        high = size;
        limit_ = std::move(problem);
      }
    }
  }
  while (low > 0 && high > low + std::max<std::size_t>(1, low / 8) && !measurements_.refused()) {
    size = (low + high) / 2;
    std::string problem = misfit(size);
    if (problem.empty()) {
      low = size;
    } else {
      high = size;
      limit_ = std::move(problem);
    }
  }
  fitting_ = low;
}

void BatchSizeSearch::try_sizes_while_they_gain() {
  fitting_ = goal_.batch_size;
  tried_.push_back(base_);
  while (fitting_ < goal_.most_batch_size) {
    const std::size_t more = std::min(2 * fitting_, goal_.most_batch_size);
    limit_ = misfit(more);
    if (limit_.empty() && !measurements_.beats(point_with(more), point_with(fitting_), since_))
      limit_ = fmt::format("{} samples are made at no higher rate", more);
    if (!limit_.empty()) return;
    fitting_ = more;
  }
}

BatchSizeFindings BatchSizeSearch::run(double since_seconds) {
  since_ = since_seconds;
  const bool limited = goal_.p99_ms || goal_.memory_bytes;
  limited ? try_sizes_within_limits() : try_sizes_while_they_gain();

  BatchSizeFindings found;
  std::sort(tried_.begin(), tried_.end(), [&](std::size_t a, std::size_t b) {
    return measurements_.setting(a).batch_size < measurements_.setting(b).batch_size;
  });
  found.fits = fitting_ > 0;
  found.chosen = found.fits ? point_with(fitting_) : tried_.empty() ? base_ : tried_.front();
  found.tried = tried_;
  const std::string chosen = plural(measurements_.setting(found.chosen).batch_size, "sample");
  if (!found.fits)
    found.why = fmt::format("No batch size keeps within {}: {}.", limits_text(goal_), limit_);
  else if (!limited)
    found.why = fmt::format("Batches of {}{}{}.", chosen, limit_.empty() ? "" : ": ", limit_);
  else
    found.why = fmt::format("Batches of {} keep within {}{}{}.", chosen, limits_text(goal_),
                            limit_.empty() ? "" : "; ", limit_);
  return found;
}

}  // namespace millrace::cli
