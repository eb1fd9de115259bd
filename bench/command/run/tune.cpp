// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <millrace/options_file.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "command/console/command.h"
#include "command/console/option_checks.h"
#include "command/console/output_file.h"
#include "command/console/streams.h"
#include "command/run/pipeline_options.h"
#include "measure/tune/tune_output.h"
#include "measure/tune/tune_page.h"
#include "measure/tune/tune_run.h"
#include "measure/tune/tune_text.h"

namespace millrace::cli {
namespace {

/// Arguments of the command line.
struct TuneArguments {
  SourceArguments source;
  std::string batch_size = std::to_string(BenchSettings().pipeline.batch_size);
  double step_ms = 0;
  std::uint64_t memory_bytes = 0;
  double p99_ms = 0;
  unsigned max_workers = 0;
  double budget_seconds = TuneGoal().budget_seconds;
  std::string out;
  std::string json;
  std::string html;
  bool accept_noise = false;
};

constexpr std::size_t max_batch_size = 1 << 20;
constexpr int doubtful = 3;

std::string check_batch_size(const std::string& text) {
  const std::size_t size = parse_number<std::size_t>(text).value_or(0);
  if (text == "auto" || (size >= 1 && size <= max_batch_size)) return {};
  return must_be(fmt::format("\"auto\" or a number from 1 to {}", max_batch_size), text);
}

TuneGoal goal_of(const TuneArguments& arguments) {
  TuneGoal goal;
  goal.step_ms = arguments.step_ms;
  goal.max_workers =
      arguments.max_workers > 0 ? arguments.max_workers : read_topology().usable_cpus;
  goal.tune_batch_size = arguments.batch_size == "auto";
  if (!goal.tune_batch_size)
    goal.batch_size = parse_number<std::size_t>(arguments.batch_size).value();
  if (arguments.p99_ms > 0) goal.p99_ms = arguments.p99_ms;
  if (arguments.memory_bytes > 0) goal.memory_bytes = arguments.memory_bytes;
  goal.budget_seconds = arguments.budget_seconds;
  return goal;
}

/// Shows a line with the current run if the output is a terminal.
class RunLine {
 public:
  ~RunLine() {
    if (runs_ > 0) std::fputs("\r\x1b[K", stderr);
  }
  void show(const TuneSetting& setting) {
    if (isatty(STDERR_FILENO) == 0) return;
    const std::string line = fmt::format("\r\x1b[Krun {}: {}", ++runs_, setting_text(setting));
    std::fputs(line.c_str(), stderr);
  }

 private:
  std::size_t runs_ = 0;
};

int run(const TuneArguments& arguments) {
  check_outputs({arguments.out, arguments.json, arguments.html}, {arguments.source.recipe});
  TuneResult result;
  {
    RunLine line;
    const BenchSettings settings = source_settings(arguments.source);
    result = run_tune(settings, goal_of(arguments),
                      [&line](const TuneSetting& setting) { line.show(setting); });
    result.recipe_name = recipe_name(arguments.source, settings);
  }
  if (arguments.json != "-") print_text(to_text(result));
  if (!arguments.json.empty()) write_text(arguments.json, to_json(result));
  if (!arguments.html.empty()) write_text(arguments.html, page_html(page_of(result)));
  if (!arguments.out.empty()) save_options(arguments.out, saved_options(result));
  return result.findings.doubtful && !arguments.accept_noise ? doubtful : 0;
}

constexpr const char* tune_footer =
    R"(Changes one variable at a time. Settings run in turn, three times or until they can be told
apart; each run has its own pipeline and a warm-up. Runs that other programs disturbed (more than 3%
of the processors, none of them free) count only if fewer than three others are left.

  workers        1, 2, 4 ... up to --max-workers, then those between, with a prefetch of 8. The
                 fewest that feed the step: the device's mean idle time is at most 2%, with
                 95% confidence (Student's t). Without a step, or if nothing feeds it: the knee, the
                 fewest that surely lose at most 5% of the best throughput.
  device share   With --decode device, unless --decode-share is given: 0, 0.25, 0.5, 0.75 or 1 of
                 the images, made by the device. The smallest that surely loses at most 5% of the
                 best rate, since the device's time belongs to the step. If a step takes longer than
                 --step-ms, also with --max-workers; then the fewest workers for that share.
  prefetch       From 2 to 8: the smallest that still feeds the step, or surely loses no more.
  micro-batches  More than 1 only if throughput or the time to the first batch (by 10%) gain.
  batch size     With --p99-ms or --memory: the largest within them that loses nothing, to an
                 eighth. With auto alone: doubled while throughput gains. A step's time grows, too.

If nothing feeds the step, or noise hides the best setting, the best mean is chosen, or for prefetch
the larger value. All outputs say so, and the exit code is 3.

Examples:
  millrace tune train.lmdb --step-ms 33 --out train.json      what feeds a step of 33 ms?
  millrace bench train.lmdb --config train.json --step-ms 33  run with it
  millrace tune train.lmdb                                    where does throughput stop growing?
  millrace tune train.lmdb --p99-ms 50 --memory 512M          the largest batch within these, too)";

}  // namespace

Command add_tune(CLI::App& millrace) {
  auto arguments = std::make_shared<TuneArguments>();
  CLI::App* command =
      millrace.add_subcommand("tune", "Find the smallest setting that feeds a training step");
  add_source_arguments(*command, arguments->source);
  const auto option = [command](const char* name, auto& value, const char* type, const char* text) {
    return command->add_option(name, value, text)->type_name(type);
  };
  option("--step-ms", arguments->step_ms, "MS",
         "Time of the training step in ms, for a batch of --batch-size; 0 = no step: searches the "
         "knee of throughput")
      ->capture_default_str()
      ->transform(between(0.0, 3600000.0));
  option("--batch-size", arguments->batch_size, "N|auto",
         "Samples per batch; auto = searched, from 64 on")
      ->capture_default_str()
      ->check(CLI::Validator(check_batch_size, ""));
  option("--p99-ms", arguments->p99_ms, "MS",
         "Search the largest batch size within this time at the 99th percentile")
      ->transform(between(0.001, 3600000.0));
  option("--memory", arguments->memory_bytes, "BYTES|512M|1.5G",
         "Search the largest batch size whose pinned memory, device memory and scratch stay within "
         "this; measuring may take more")
      ->transform(bytes_check(1024));
  option("--max-workers", arguments->max_workers, "N",
         "Most workers to try; 0 = one per usable processor")
      ->capture_default_str()
      ->transform(between(0, 4096));
  option("--budget-s", arguments->budget_seconds, "S",
         "Time for everything; the result names what did not fit into it")
      ->capture_default_str()
      ->transform(between(0.1, 86400.0));
  option("--out", arguments->out, "FILE.json",
         "Write the setting, its reasons and the machine, for `bench --config` and load_options()")
      ->check(output_check(false));
  option("--json", arguments->json, "FILE",
         "Write every run as JSON to a file; - prints it instead of the tables")
      ->check(output_check(true));
  option("--html", arguments->html, "FILE",
         "Write a page for people: the choice and its reasons, the sweep and the tables")
      ->check(output_check(false));
  command->add_flag("--accept-noise", arguments->accept_noise,
                    "Exit with 0, not 3, if nothing feeds the step or noise hid the best setting");
  command->footer(tune_footer);
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace millrace::cli
