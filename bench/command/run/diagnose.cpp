// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <string>

#include "command/console/command.h"
#include "command/console/option_checks.h"
#include "command/console/output_file.h"
#include "command/console/streams.h"
#include "command/run/pipeline_options.h"
#include "measure/diagnose/diagnose_output.h"

namespace millrace::cli {
namespace {

/// Arguments of the command line.
struct DiagnoseArguments {
  SourceArguments source;
  PipelineArguments pipeline;
  std::string step_ms;
  std::uint64_t batches = 0;
  double seconds = 2;
  unsigned rounds = 3;
  std::string json;
  std::string html;
};

int run(const DiagnoseArguments& arguments) {
  check_outputs({arguments.json, arguments.html},
                {arguments.source.recipe, arguments.pipeline.config});
  DiagnoseRecord record;
  DiagnoseSettings& settings = record.settings;
  settings.open = [dataset = arguments.source.dataset] { return open_as_given(dataset); };
  settings.rounds = arguments.rounds;
  BenchSettings& bench = settings.bench;
  bench = bench_settings(arguments.source, arguments.pipeline);
  bench.batches = arguments.batches;
  bench.duration = std::chrono::nanoseconds(std::llround(arguments.seconds * 1e9));
  static_cast<RunSetup&>(record) = run_setup(arguments.source, arguments.step_ms, bench);
  bench.step = step_of(arguments.step_ms, bench);
  bench.dataset.reset();  // its pages cannot be dropped while it is open

  diagnose(record);
  if (arguments.json != "-") print_text(to_text(record));
  if (!arguments.json.empty()) write_text(arguments.json, to_json(record));
  if (!arguments.html.empty()) write_text(arguments.html, to_html(record));
  return 0;
}

void add_measuring_options(CLI::App& command, DiagnoseArguments& arguments) {
  command
      .add_option("--step-ms", arguments.step_ms,
                  "Length of the training step in ms, as measured without a loader; auto = 1.25 x "
                  "the loader's own time per batch")
      ->type_name("MS|auto")
      ->required()
      ->check(step_check(false));
  auto* batches = command
                      .add_option("--batches", arguments.batches,
                                  "Number of batches to measure per phase and round")
                      ->type_name("N")
                      ->transform(between(std::uint64_t{1}, std::uint64_t{1} << 32));
  add_number(command, "--seconds", arguments.seconds,
             "Time to measure per phase and round, in seconds", 0.01, 86400.0, "S")
      ->excludes(batches);
  add_number(
      command, "--rounds", arguments.rounds,
      "Number of rounds, each of which measures every phase once; more rounds find smaller stalls",
      2, 100);
  command
      .add_option("--json", arguments.json,
                  "Write everything as JSON to a file; - prints it instead of the table")
      ->type_name("FILE")
      ->check(output_check(true));
  command
      .add_option(
          "--html", arguments.html,
          "Write a page for people: the verdict and where an epoch's time goes, in one file")
      ->type_name("FILE")
      ->check(output_check(false));
}

}  // namespace

Command add_diagnose(CLI::App& millrace) {
  auto arguments = std::make_shared<DiagnoseArguments>();
  CLI::App* command = millrace.add_subcommand(
      "diagnose", "Find out why a device waits: storage, preparation or copies");
  add_source_arguments(*command, arguments->source);
  add_pipeline_arguments(*command, arguments->pipeline);
  add_measuring_options(*command, *arguments);
  command->footer(
      R"(Measures phases: the step alone; with a batch that is already on the device; with copies of
batches that need no making; with the whole loader; and with the loader from its start, both with
the dataset in the page cache and dropped from it. Their differences are the times that the device
waits. Takes about six phases x rounds x seconds. Drops the dataset's file from the page cache,
which slows other programs that read it.

Examples:
  millrace diagnose train.lmdb --step-ms 30 --batch-size 256      why does the device wait?
  millrace diagnose train.lmdb --step-ms 30 --rounds 10           finds smaller differences
  millrace diagnose train.lmdb --step-ms 30 --config train.json   with the result of `tune`
  millrace diagnose train.lmdb --step-ms 30 --device cuda:0       on a GPU
  millrace diagnose train.lmdb --step-ms 30 --json result.json    result as JSON)");
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace millrace::cli
