// SPDX-License-Identifier: Apache-2.0
//
// The search of the share of images that the device makes.
#include <algorithm>
#include <vector>

#include "measure/tune/tune_searcher.h"
#include "measure/tune/tune_statistics.h"

namespace millrace::cli {

void TuneSearcher::search_device_share() {
  begin(TuneVariable::device_share);
  // The device's work may make steps slower without idle time between them. So rates decide, also
  // of settings that feed the step.
  rounds_.begin((end_of(TuneVariable::workers) + end_of(TuneVariable::device_share)) / 2, true);
  chosen_ = race_shares(points_of(device_percents));
  feeds_ = feeds_ && rounds_.feeds(chosen_);
  rounds_.begin(end_of(TuneVariable::device_share), true);
  if (setting(chosen_).workers < goal_.max_workers && has_slow_steps()) {
    // A worker takes much longer to make an image than to pack it. So a smaller share may gain only
    // with many more workers.
    const TuneSetting before = base_;
    base_ = changed(base_, TuneVariable::workers, goal_.max_workers);
    Points points = points_of(device_percents);
    points.insert(points.begin(), chosen_);
    const std::size_t best = race_shares(points);
    if (best == chosen_) {
      base_ = before;
    } else {
      const TuneSetting with_all = setting(best);
      chosen_ = best;
      base_ = with_all;
      variable_ = TuneVariable::workers;
      choose_workers();
      findings_.phases.front().points = tried();
      variable_ = TuneVariable::device_share;
      base_ = with_all;
    }
  }
  end();
}

/// Returns the first of the points that surely loses at most `tolerance` of the throughput. If the
/// chosen setting feeds the step and is among those left, the first of them that feeds it, too.
std::size_t TuneSearcher::race_shares(const Points& points) {
  TuneRounds::Race all = race(points, all_values_rounds);
  if (!all.clear && !rounds_.ran_out_of_time()) all = race(all.alive, best_values_rounds);
  if (!all.clear &&
      std::ranges::find(findings_.not_told_apart, variable_) == findings_.not_told_apart.end())
    findings_.not_told_apart.push_back(variable_);
  if (!feeds_ || std::ranges::find(all.alive, chosen_) == all.alive.end()) return all.chosen;
  const auto fed = std::find_if(std::ranges::find(all.alive, all.chosen), all.alive.end(),
                                [this](std::size_t point) {
                                  return point == chosen_ || rounds_.judge({point, chosen_});
                                });
  return fed == all.alive.end() ? all.chosen : *fed;
}

bool TuneSearcher::has_slow_steps() const {
  return !feeds_ || rounds_.summary(chosen_).samples_per_second.mean <
                        (1 - min_loss) * goal_.needed_samples_per_second();
}

}  // namespace millrace::cli
