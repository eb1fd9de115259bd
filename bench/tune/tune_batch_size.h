// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tune/tune_measurements.h"

namespace millrace::cli {

struct BatchSizeFindings {
  std::size_t chosen = 0;
  /// Whether any batch size keeps within the limits; where none does, the smallest that was tried
  /// is chosen.
  bool fits = true;
  /// Points, by batch size.
  std::vector<std::size_t> tried{};
  std::string why{};
};

/// The last part of the search (see `search_settings`): the largest batch within the limits, or
/// without limits the smallest beyond which throughput does not gain.
class BatchSizeSearch {
 public:
  /// `base` is the point found so far, `feeds` whether it feeds the step; a batch size that loses
  /// that, or throughput, does not fit.
  BatchSizeSearch(const TuneGoal& goal, Measurements& measurements, std::size_t base, bool feeds);

  /// Begins at `since_seconds`: earlier runs are not compared with.
  BatchSizeFindings run(double since_seconds);

 private:
  std::size_t point_with(std::size_t batch_size);
  void try_sizes_within_limits();
  void try_sizes_while_they_gain();
  /// Empty where the size fits, else why not.
  std::string misfit(std::size_t batch_size);
  std::string misfit_of(std::size_t point);

  const TuneGoal& goal_;
  Measurements& measurements_;
  const std::size_t base_;
  const bool feeds_;
  double since_ = 0;
  std::vector<std::size_t> tried_;
  std::size_t fitting_ = 0;
  std::string limit_;
};

}  // namespace millrace::cli
