// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/report.h>

#include <string>
#include <utility>
#include <vector>

namespace millrace::testing {

/// A report, made from the figures that the verdict depends on. Shares are fractions of the time, 0
/// to 1.
struct MadeUpReport {
  double utilization = 0.99;
  /// Share of the workers' time. The transform has the rest.
  double read = 0.1;
  double copy = 0.1;
  double crop = 0;
  double mix = 0;
  double convert = 0;
  double trainer = 0.1;
  double stall = 0.4;
  double ahead = 0;
  double delay = 0;
  unsigned workers = 2;
  unsigned cores = 8;
  double seconds = 10;
  std::uint64_t batches = 200;
  /// Part of the stalls: the stall for the run's first batch.
  double start_seconds = 0;
  double ready_batches = 0.1;
  /// 0 stands for all workers.
  double active_workers = 0;
  /// Time in the transform's first stage of a usual sample, and of the slowest one.
  double usual_sample_ms = 5;
  double slowest_sample_ms = 8;
  double longest_stall_ms = 30;
  /// The transform's stages, with their shares of its time.
  std::vector<std::pair<std::string, double>> transform = {{"decode", 0.9}, {"augment", 0.1}};
  /// Whether the device copies.
  bool copies = true;

  Report report() const {
    Report report;
    report.seconds = seconds;
    report.batches = batches;
    report.samples = 8 * batches;
    report.workers = workers;
    report.active_workers = active_workers > 0 ? active_workers : workers;
    report.cores = cores;
    report.worker_utilization = utilization;
    report.worker_delay = delay;
    report.ready_batches = ready_batches;
    report.stages = {{.name = "read", .share = read, .each = {.p50_ms = 0.1, .max_ms = 0.2}}};
    for (const auto& [name, share] : transform)
      report.stages.push_back({.name = name, .share = share * (1 - read)});
    report.stages[1].each = {.p50_ms = usual_sample_ms, .max_ms = slowest_sample_ms};
    const auto add = [&](const char* name, double busy) {
      report.stages.push_back({.name = name, .busy_seconds = seconds * busy, .occupancy = busy});
    };
    if (copies) {
      add("copy", copy);
      for (const auto& [name, busy] : {std::pair("crop", crop), std::pair("mix", mix)}) {
        if (busy == 0) continue;
        add(name, busy);
        report.stages.back().on_device = true;
      }
      add("convert", convert);
    }
    add("trainer", trainer);
    report.copied_bytes = 20'000'000'000;
    report.stall.total_ms = 1e3 * seconds * stall;
    report.stall.max_ms = longest_stall_ms;
    report.start_stall_ms = 1e3 * start_seconds;
    report.ahead.total_ms = 1e3 * seconds * ahead;
    return report;
  }
};

}  // namespace millrace::testing
