// SPDX-License-Identifier: Apache-2.0
//
// The search of the batch size.
#include <fmt/format.h>

#include <algorithm>

#include "measure/text/text.h"
#include "measure/tune/tune_searcher.h"
#include "measure/tune/tune_statistics.h"
#include "measure/tune/tune_text.h"

namespace millrace::cli {

void TuneSearcher::search_batch_size() {
  begin(TuneVariable::batch_size);
  // Largest size that fits, and smallest that does not fit; 0 = not known yet.
  std::size_t low = 0;
  std::size_t high = 0;
  std::string limit;
  for (std::size_t next = goal_.batch_size;
       next > 0 && (high == 0 || !rounds_.ran_out_of_time());) {
    std::string problem = reason_to_reject(next);
    (problem.empty() ? low : high) = next;
    if (high == 0 || high == next) limit = std::move(problem);
    if (high == 0)
      next = low < goal_.max_batch_size ? std::min(2 * low, goal_.max_batch_size) : 0;
    else if (low == 0)
      next = high / 2;
    else
      next = is_limited() && high > low + std::max<std::size_t>(1, low / 8) ? (low + high) / 2 : 0;
  }
  if (low == 0) findings_.outcome = TuneOutcome::nothing_fits;
  chosen_ = low > 0 ? point_of(low) : tried().front();
  std::string why = low == 0
                        ? "No batch size keeps within " + limits_text(goal_)
                        : fmt::format("Batches of {}{}", count_text(low, "sample"),
                                      is_limited() ? " keep within " + limits_text(goal_) : "");
  if (!limit.empty()) why += (low > 0 && is_limited() ? "; " : ": ") + limit;
  end().why = why + ".";
}

std::string TuneSearcher::reason_to_reject(std::size_t batch_size) {
  const auto megabytes = [](double bytes) { return fmt::format("{:.0f} MB", bytes / 1e6); };
  const std::size_t max_bytes =
      std::min(goal_.max_memory_bytes, goal_.memory_bytes.value_or(SIZE_MAX));
  const double expected_bytes = static_cast<double>(rounds_.summary(chosen_).memory_bytes) *
                                static_cast<double>(batch_size) /
                                static_cast<double>(goal_.batch_size);
  // The scratch does not grow with the batch, so the estimate may be too high. Sizes are measured
  // up to an estimate of 1.5 times the limit.
  if (expected_bytes > 1.5 * static_cast<double>(max_bytes))
    return fmt::format("{} samples take about {}", batch_size, megabytes(expected_bytes));
  const std::size_t point = point_of(batch_size);
  rounds_.run_until(few_runs, {point});
  const TuneSummary measured = rounds_.summary(point);
  if (measured.runs == 0) return fmt::format("{} samples could not be tried in time", batch_size);
  if (goal_.p99_ms && measured.batch_p99_ms > *goal_.p99_ms)
    return fmt::format("{} samples take {:.1f} ms at the 99th percentile", batch_size,
                       measured.batch_p99_ms);
  if (measured.memory_bytes > max_bytes)
    return fmt::format("{} samples take {}", batch_size,
                       megabytes(static_cast<double>(measured.memory_bytes)));
  if (feeds_ && !rounds_.judge({point}))
    return fmt::format("batches of {} samples are not made fast enough for the step", batch_size);
  if (!feeds_ && point != chosen_ && is_faster(chosen_, point))
    return fmt::format("{} samples are made at a lower rate", batch_size);
  if (!is_limited() && batch_size > goal_.batch_size && !is_faster(point, point_of(batch_size / 2)))
    return fmt::format("{} samples are made at no higher rate", batch_size);
  return {};
}

}  // namespace millrace::cli
