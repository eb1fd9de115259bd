// SPDX-License-Identifier: Apache-2.0
#include "runtime/auto_workers.h"

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

/// If the share of time in stalls is above this, there are too few workers.
constexpr double stalls = 0.02;
/// Margin above the measured need, for samples that take longer than others.
constexpr double room = 1.1;
constexpr unsigned max_patience = 64;

}  // namespace

unsigned AutoWorkers::update(const Window& window) {
  const double trainer_seconds = window.seconds - window.stall_seconds;
  // All workers together need `busy_seconds` for the samples that the trainer uses in
  // `trainer_seconds`.
  const double need = trainer_seconds > 0 ? room * window.busy_seconds / trainer_seconds : most_;
  const auto enough =
      static_cast<unsigned>(std::clamp(std::ceil(need), 1.0, static_cast<double>(most_)));
  if (window.stall_seconds > stalls * window.seconds) {
    if (removed_last_) patience_ = std::min(2 * patience_, max_patience);
    workers_ = std::clamp(std::max(workers_ + 1, enough), 1U, most_);
    removed_last_ = false;
    calm_ = 0;
    return workers_;
  }
  if (enough >= workers_) {
    calm_ = 0;
  } else if (++calm_ >= patience_) {
    workers_ = std::max(enough, workers_ - std::max(1U, workers_ / 4));
    removed_last_ = true;
    calm_ = 0;
  }
  return workers_;
}

}  // namespace millrace
