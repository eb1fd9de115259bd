// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>
#include <millrace/measure.h>

#include <algorithm>
#include <utility>

#include "measure/bench/workload.h"
#include "measure/diagnose/diagnose_output.h"

namespace millrace::measure {

DiagnoseResult diagnose(const Workload& workload, const DiagnoseOptions& options) {
  if (!workload.step) throw Error(ErrorCode::invalid_argument, "diagnose needs a step");
  cli::check_option("rounds", options.rounds, 2, 1e6);  // the noise of one round is unknown
  cli::check_count("batches", options.batches);
  cli::check_seconds("duration", std::chrono::duration<double>(options.duration).count());
  cli::DiagnoseRecord record;
  cli::DiagnoseSettings& settings = record.settings;
  settings.bench = cli::settings_of(workload, options.open == nullptr);
  cli::BenchSettings& bench = settings.bench;
  static_cast<cli::RunSetup&>(record) = cli::setup_of(workload, bench);
  settings.open = options.open;
  settings.rounds = options.rounds;
  bench.batches = options.batches;
  bench.duration = options.duration;
  if (options.open) bench.dataset = options.open();
  record.dataset = bench.dataset->name();
  bench.step = std::max(cli::measure_user_step(bench), std::chrono::nanoseconds(1));
  if (options.open) bench.dataset.reset();

  cli::diagnose(record);
  DiagnoseResult result;
  for (const cli::EpochShare& part : record.account.parts)
    result.parts.push_back({.name = cli::names_of(part.part).key,
                            .batch_ms = part.batch_ms,
                            .noise_ms = part.measured.noise,
                            .share = part.share,
                            .unsure = part.unsure});
  result.batch_ms = record.account.batch_ms;
  result.why_no_fetch = record.result.cold.missing;
  result.verdict = record.verdict;
  result.warnings = cli::warnings_of(record);
  result.text = cli::to_text(record);
  result.json = cli::to_json(record);
  result.page = cli::to_html(record);
  return result;
}

}  // namespace millrace::measure
