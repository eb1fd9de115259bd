// SPDX-License-Identifier: Apache-2.0
#include <millrace/measure.h>

#include <utility>

#include "measure/bench/bench_output.h"
#include "measure/bench/workload.h"

namespace millrace::measure {

BenchResult bench(const Workload& workload, const BenchOptions& options) {
  cli::check_count("warmup", options.warmup);
  cli::check_count("batches", options.batches);
  cli::check_seconds("duration", std::chrono::duration<double>(options.duration).count());
  cli::BenchRecord record;
  cli::BenchSettings& settings = record.settings;
  settings = cli::settings_of(workload);
  static_cast<cli::RunSetup&>(record) = cli::setup_of(workload, settings);
  settings.warmup = options.warmup;
  settings.batches = options.batches;
  settings.duration = options.duration;
  const std::shared_ptr<const Trace> trace = cli::measure_bench(record, options.page);

  const cli::BenchResult& measured = record.result;
  BenchResult result;
  result.report = measured.report;
  result.verdict = measured.verdict;
  if (measured.report.seconds > 0)
    result.samples_per_second =
        static_cast<double>(measured.report.samples) / measured.report.seconds;
  result.device_idle = measured.device_idle;
  result.step_ms = measured.device_step_ms;
  result.idle_by_synthetic = record.baselines.idle_by_synthetic;
  result.idle_floor = record.baselines.idle_floor;
  result.batch_ms = measured.batch_ms;
  result.consumer_us = measured.consumer.mean_us;
  result.cpu_seconds = measured.cpu_seconds;
  result.disturbed = measured.disturbed;
  result.warnings = cli::warnings_of(record);
  result.text = cli::to_text(record);
  result.json = cli::to_json(record);
  if (options.page) result.page = cli::to_html(record, *trace);
  return result;
}

}  // namespace millrace::measure
