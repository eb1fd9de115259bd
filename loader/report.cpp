// SPDX-License-Identifier: Apache-2.0
#include <millrace/report.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace millrace {
namespace {

/// Below this share of time without work the device counts as fed.
constexpr double fed_idle = 0.02;
/// Above this share of time at work the workers count as busy.
constexpr double busy_workers = 0.85;

/// 0.0123 -> "1.2%"
std::string percent(double share) {
  const long tenths = std::lround(share * 1000);
  return std::to_string(tenths / 10) + "." + std::to_string(std::abs(tenths % 10)) + "%";
}

Verdict bound_by_workers(const Report& report) {
  const auto stage = std::max_element(report.stages.begin(), report.stages.end(),
                                      [](const StageReport& a, const StageReport& b) { return a.busy_seconds < b.busy_seconds; });
  const Bound bound = stage == report.stages.begin() ? Bound::read : Bound::transform;
  return {bound, stage->name,
          stage->name + " bounds the run: the " + std::to_string(report.workers) + " workers are busy " +
              percent(report.worker_utilization) + " of the time, " + percent(stage->share) + " of it in " + stage->name};
}

}  // namespace

Verdict judge(const Report& report, double device_idle) {
  const double waited_seconds = (report.stall.total_ms + report.ahead.total_ms) / 1e3;
  const double stall_share = report.seconds > 0 ? report.stall.total_ms / 1e3 / report.seconds : 0;
  if (device_idle >= 0 && device_idle < fed_idle)
    return {Bound::step, "step", "the step bounds the run: the device was idle " + percent(device_idle) + " of the time"};
  if (report.worker_utilization >= busy_workers && !report.stages.empty()) return bound_by_workers(report);
  const std::string idle = device_idle >= 0 ? "the device was idle " + percent(device_idle) + " of the time, " : "";
  if (report.ahead.total_ms > report.stall.total_ms && waited_seconds > fed_idle * report.seconds)
    return {Bound::copy, "copy",
            "copying bounds the run: " + idle + "slots wait for copies while the workers are busy " +
                percent(report.worker_utilization) + " of the time"};
  if (stall_share > fed_idle && !report.stages.empty()) return bound_by_workers(report);
  return {Bound::trainer, "trainer",
          "the trainer bounds the run: " + idle + "batches were ready when it asked (stall " + percent(stall_share) +
              " of the time)"};
}

}  // namespace millrace
