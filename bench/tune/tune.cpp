// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <millrace/options_file.h>
#include <unistd.h>

#include <cerrno>
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "command.h"
#include "console/output_file.h"
#include "measure/pipeline_options.h"
#include "tune/tune_output.h"
#include "tune/tune_result_page.h"
#include "tune/tune_run.h"
#include "tune/tune_text.h"

namespace millrace::cli {
namespace {

/// The command line as given.
struct TuneArguments {
  SourceArguments source;
  std::string batch_size = std::to_string(BenchSettings().batch_size);
  double step_ms = 0;
  std::string memory;
  double p99_ms = 0;
  unsigned max_workers = 0;
  double budget_seconds = TuneGoal().budget_seconds;
  std::string out;
  std::string json;
  std::string html;
};

std::size_t parse_count(const std::string& text) {
  std::size_t read = 0;
  const unsigned long long value = std::stoull(text, &read);
  if (read != text.size() || text[0] == '-' || value < 1 || value > 1U << 20U)
    throw std::invalid_argument(text);
  return static_cast<std::size_t>(value);
}

/// "512M" -> 512 x 2^20
std::size_t parse_bytes(const std::string& text) {
  std::size_t read = 0;
  const double value = std::stod(text, &read);
  const std::string units = "KMGT";
  double factor = 1;
  if (read < text.size()) {
    const std::size_t unit = units.find(text[read]);
    if (unit == std::string::npos || read + 1 < text.size()) throw std::invalid_argument(text);
    factor = std::pow(1024.0, static_cast<double>(unit) + 1);
  }
  if (!(value * factor >= 1 && value * factor < 1e18)) throw std::invalid_argument(text);
  return static_cast<std::size_t>(value * factor);
}

/// Empty where `parse` takes the text, else what it must be.
template <typename Parse>
CLI::Validator parsed_by(Parse parse, const std::string& must_be) {
  const auto check = [parse, must_be](const std::string& text) {
    try {
      parse(text);
      return std::string();
    } catch (const std::exception&) {
      return "must be " + must_be + ", not \"" + text + "\"";
    }
  };
  return CLI::Validator(check, "");
}

TuneGoal goal_of(const TuneArguments& arguments) {
  TuneGoal goal;
  goal.step_ms = arguments.step_ms;
  goal.max_workers = arguments.max_workers > 0 ? arguments.max_workers : read_topology().cores;
  goal.tune_batch_size = arguments.batch_size == "auto";
  if (!goal.tune_batch_size) goal.batch_size = parse_count(arguments.batch_size);
  if (arguments.p99_ms > 0) goal.p99_ms = arguments.p99_ms;
  if (!arguments.memory.empty()) goal.memory_bytes = parse_bytes(arguments.memory);
  goal.budget_seconds = arguments.budget_seconds;
  return goal;
}

void save(const TuneResult& result, const std::string& path) {
  const TuneFindings& findings = result.findings;
  const TuneSetting& chosen = findings.chosen;
  SavedOptions options;
  options.pipeline.batch_size = chosen.batch_size;
  options.pipeline.slots.prefetch = chosen.prefetch;
  options.pipeline.slots.micro_batches = chosen.micro_batches;
  options.workers = chosen.workers;
  options.why = findings.why;
  const double step_ms = result.goal.step_ms * static_cast<double>(chosen.batch_size) /
                         static_cast<double>(result.goal.batch_size);
  options.tuned_for = {.dataset = result.dataset,
                       .records = result.records,
                       .recipe = result.recipe,
                       .step_ms = step_ms};
  options.machine = result.machine;
  save_options(path, options);
}

/// One line on a terminal that says what runs; elsewhere nothing.
class RunLine {
 public:
  ~RunLine() {
    if (runs_ > 0) fmt::print(stderr, "\r\x1b[K");
  }
  void show(const TuneSetting& setting) {
    if (isatty(STDERR_FILENO) == 0) return;
    fmt::print(stderr, "\r\x1b[Krun {}: {}, prefetch {}, {}, batches of {}", ++runs_,
               plural(setting.workers, "worker"), setting.prefetch,
               plural(setting.micro_batches, "part"), setting.batch_size);
  }

 private:
  std::size_t runs_ = 0;
};

TuneResult tune(const TuneArguments& arguments) {
  RunLine line;
  TuneResult result = run_tune(source_settings(arguments.source), goal_of(arguments),
                               [&line](const TuneSetting& setting) { line.show(setting); });
  result.recipe_name = arguments.source.recipe;
  return result;
}

int run(const TuneArguments& arguments) {
  for (const std::string& file : {arguments.out, arguments.json, arguments.html})
    check_writable(file);
  const TuneResult result = tune(arguments);
  if (arguments.json != "-") fmt::print("{}", to_text(result));
  if (!arguments.json.empty()) write_text(arguments.json, to_json(result));
  if (!arguments.html.empty()) write_text(arguments.html, to_html(page_of(result)));
  if (!arguments.out.empty()) save(result, arguments.out);
  return 0;
}

constexpr const char* footer =
    "One variable is changed at a time: workers (with an ample prefetch of 8), then prefetch, "
    "micro-batches and, where it is "
    "asked\n"
    "for, the batch size. Every setting runs at least three times, each time with a pipeline of "
    "its own that is warmed up; "
    "settings\n"
    "that are compared take turns. Runs during which other programs took more than 3% of the "
    "processors, with none left over, "
    "are set\n"
    "aside as long as three others are left. Lengths and numbers of runs follow from the budget.\n"
    "\n"
    "  workers        1, 2, 4 ... up to --max-workers, then those between. The fewest that feed "
    "the step: the device's mean "
    "idle\n"
    "                 time is at most 2% with 95% confidence (Student's t; up to seven runs). "
    "Without a step, or where nothing\n"
    "                 feeds it: the knee, the fewest workers with 95% of the best throughput. The "
    "universal scalability law is\n"
    "                 fitted to the rates, says where to look, and is printed.\n"
    "  prefetch       The smallest with which the step is still fed, or throughput not lower.\n"
    "  micro-batches  More than 1 only where throughput, idle time or the time to the first batch "
    "(by 10%) gain.\n"
    "  batch size     With --p99-ms or --memory: the largest whose 99th percentile of the time per "
    "batch and whose memory keep "
    "within\n"
    "                 these and that loses nothing, to an eighth. With auto alone: doubled while "
    "throughput gains. A step's "
    "time\n"
    "                 grows with the batch.\n"
    "\n"
    "A setting is better only by 2% and more, with 99% confidence (Welch's t-test); within that "
    "noise the cheaper one is taken.\n"
    "\n"
    "Examples:\n"
    "  millrace tune train.lmdb --step-ms 33 --out train.json      what feeds a step of 33 ms?\n"
    "  millrace bench train.lmdb --config train.json --step-ms 33  run with it\n"
    "  millrace tune train.lmdb                                    where does throughput stop "
    "growing?\n"
    "  millrace tune train.lmdb --p99-ms 50 --memory 512M          also the largest batch within "
    "these\n"
    "  millrace tune train.lmdb --budget-s 20 --json result.json   quickly, with every run for the "
    "records";

}  // namespace

Command add_tune(CLI::App& millrace) {
  auto arguments = std::make_shared<TuneArguments>();
  CLI::App* command =
      millrace.add_subcommand("tune", "Find the smallest setting that feeds a training step");
  add_source_arguments(*command, arguments->source);
  command
      ->add_option("--step-ms", arguments->step_ms,
                   "Time of the training step per batch in ms (of --batch-size); 0 = none: the "
                   "knee of throughput is searched")
      ->type_name("MS")
      ->capture_default_str()
      ->check(between(0.0, 3600000.0));
  command
      ->add_option("--batch-size", arguments->batch_size,
                   "Samples per batch; auto = searched, beginning with 64")
      ->type_name("N|auto")
      ->capture_default_str()
      ->check(
          parsed_by([](const std::string& text) { return text == "auto" ? 0 : parse_count(text); },
                    "\"auto\" or a number from 1 to 1048576"));
  command
      ->add_option("--p99-ms", arguments->p99_ms,
                   "Search the largest batch that takes no more time at the 99th percentile")
      ->type_name("MS")
      ->check(between(0.001, 3600000.0));
  command
      ->add_option("--memory", arguments->memory,
                   "Search the largest batch whose pinned and device memory and scratch keep "
                   "within this; measuring may take more")
      ->type_name("BYTES|512M|2G")
      ->check(parsed_by(parse_bytes, "a number of bytes, with K, M, G or T for powers of 1024"));
  command
      ->add_option("--max-workers", arguments->max_workers, "Try no more workers; 0 = usable cores")
      ->type_name("N")
      ->capture_default_str()
      ->check(between(0, 4096));
  command
      ->add_option("--budget-s", arguments->budget_seconds,
                   "Time for everything; what does not fit in is said")
      ->type_name("S")
      ->capture_default_str()
      ->check(between(0.1, 86400.0));
  command
      ->add_option(
          "--out", arguments->out,
          "Write the setting, why and the machine, for `bench --config` and load_options()")
      ->type_name("FILE.json");
  command
      ->add_option("--json", arguments->json,
                   "Write every run as JSON to a file; - prints it instead of the tables")
      ->type_name("FILE");
  command
      ->add_option("--html", arguments->html,
                   "Write a page for people: what was chosen and why, the sweep and the tables")
      ->type_name("FILE")
      ->check(file_check());
  command->footer(footer);
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace millrace::cli
