// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/placement.h>
#include <millrace/measure.h>

#include "measure/bench/workload.h"
#include "measure/page/page.h"
#include "measure/tune/tune_output.h"
#include "measure/tune/tune_page.h"
#include "measure/tune/tune_run.h"

namespace millrace::measure {
namespace {

MeasuredSetting measured_of(const cli::TunePoint& point) {
  const cli::TuneSummary& summary = point.summary;
  MeasuredSetting measured{.setting = point.setting,
                           .runs = summary.runs,
                           .samples_per_second = summary.samples_per_second.mean,
                           .samples_per_second_sd = summary.samples_per_second.sd,
                           .batch_p50_ms = summary.batch_p50_ms,
                           .batch_p99_ms = summary.batch_p99_ms,
                           .memory_bytes = summary.memory_bytes};
  if (summary.device_idle) measured.device_idle = summary.device_idle->mean;
  return measured;
}

}  // namespace

TuneResult tune(const Workload& workload, const TuneOptions& options) {
  cli::check_option("max_workers", options.max_workers, 0, 4096);
  if (options.p99_ms) cli::check_option("p99_ms", *options.p99_ms, 0.001, 3600000);
  if (options.memory_bytes)
    cli::check_option("memory_bytes", static_cast<double>(*options.memory_bytes), 1024, 0x1p63);
  cli::check_option("budget", options.budget.count(), 0.1, 86400);
  cli::BenchSettings settings = cli::settings_of(workload);
  cli::TuneGoal goal;
  const Ranks& ranks = settings.pipeline.ranks.this_process;
  goal.max_workers =
      options.max_workers > 0
          ? options.max_workers
          : share_of(read_topology(), ranks.local_rank, ranks.local_world).usable_cpus;
  goal.batch_size = settings.pipeline.batch_size;
  goal.tune_batch_size = options.batch_size;
  goal.p99_ms = options.p99_ms;
  goal.memory_bytes = options.memory_bytes;
  goal.budget_seconds = options.budget.count();
  if (options.transform_of_share)
    settings.transform_of_share = [&](double share) {
      return cli::fitted(options.transform_of_share(share), *settings.dataset);
    };
  const double step_ms = cli::milliseconds(cli::measure_user_step(settings));
  // Without copies, the step shares the processors with the workers. Its time without workers is
  // then not a target.
  if (workload.device->copies()) goal.step_ms = step_ms;
  settings.pipeline.runtime = nullptr;
  cli::TuneResult found = cli::run_tune(settings, goal, options.on_run);
  found.recipe_name = "of its own";
  if (workload.step) found.user_step_ms = step_ms;

  const cli::TuneFindings& findings = found.findings;
  TuneResult result;
  result.chosen = findings.chosen;
  result.options = cli::saved_options(found);
  result.step_ms = step_ms;
  for (const cli::TunePoint& point : findings.points)
    if (!point.runs.empty()) result.settings.push_back(measured_of(point));
  result.feeds_step = findings.outcome == cli::TuneOutcome::feeds_step;
  result.doubtful = findings.doubtful;
  result.verdict = findings.verdict;
  result.why = findings.why;
  result.warnings = findings.warnings;
  result.text = cli::to_text(found);
  result.json = cli::to_json(found);
  result.page = cli::page_html(cli::page_of(found));
  return result;
}

}  // namespace millrace::measure
