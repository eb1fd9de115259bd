// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "bench_output.h"
#include "command.h"

namespace millrace::cli {
namespace {

/// The command line as given.
struct Arguments {
  std::string dataset;
  std::size_t batch_size = 64;
  unsigned workers = 0;
  std::size_t prefetch = 4;
  std::size_t micro_batches = 1;
  std::string step_ms = "0";
  std::uint64_t batches = 0;
  double seconds = 5;
  std::uint64_t warmup = 10;
  int size = 224;
  std::string recipe = "train";
  std::uint64_t seed = 0;
  std::string device = "host";
  std::string json;
  bool ceiling = false;
  bool digest = false;
};

/// How much slower than the loader the step of `--step-ms auto` is.
constexpr double auto_step = 1.25;

std::chrono::nanoseconds parse_step(const std::string& text) {
  std::size_t read = 0;
  const double milliseconds = std::stod(text, &read);
  if (read != text.size()) throw std::invalid_argument(text);
  return std::chrono::nanoseconds(std::llround(milliseconds * 1e6));
}

/// A range check that leaves the option's line in the help short.
template <typename Number>
CLI::Validator between(Number low, Number high) {
  return CLI::Range(low, high).description("");
}

std::string check_step(const std::string& text) {
  if (text == "auto") return {};
  try {
    const auto step = parse_step(text);
    if (step.count() >= 0 && step <= std::chrono::hours(1)) return {};
  } catch (const std::exception&) {
    // Not a number: said below.
  }
  return "must be \"auto\" or milliseconds from 0 to 3600000, not \"" + text + "\"";
}

Recipe load_recipe(const Arguments& arguments) {
  if (arguments.recipe == "train") return Recipe::train(arguments.size);
  if (arguments.recipe == "eval") return Recipe::eval(arguments.size);
  std::ifstream file(arguments.recipe);
  if (!file)
    throw Error(ErrorCode::not_found, "--recipe " + arguments.recipe + ": no such file; give train, eval or a JSON file");
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  return Recipe::from_json(json, arguments.recipe);
}

int run(const Arguments& arguments) {
  BenchRecord record;
  record.dataset = arguments.dataset;
  record.recipe_name = arguments.recipe;
  BenchSettings& settings = record.settings;
  settings.recipe = load_recipe(arguments);
  settings.dataset = open_dataset(arguments.dataset);
  settings.runtime = make_runtime({.workers = arguments.workers});
  settings.batch_size = arguments.batch_size;
  settings.prefetch = arguments.prefetch;
  settings.micro_batches = arguments.micro_batches;
  settings.seed = arguments.seed;
  settings.warmup = arguments.warmup;
  settings.batches = arguments.batches;
  settings.duration = std::chrono::nanoseconds(std::llround(arguments.seconds * 1e9));
  settings.digest = arguments.digest;
  record.machine = describe_machine(settings.runtime->topology());

  record.step_is_auto = arguments.step_ms == "auto";
  settings.step =
      record.step_is_auto
          ? std::chrono::nanoseconds(std::llround(auto_step * static_cast<double>(measure_batch_time(settings).count())))
          : parse_step(arguments.step_ms);
  record.result = run_bench(settings);
  if (arguments.ceiling) record.ceiling = measure_ceiling(settings);

  if (arguments.json != "-") fmt::print("{}", to_text(record));
  if (!arguments.json.empty()) write_text(arguments.json, to_json(record));
  return 0;
}

/// Options of the pipeline that is measured.
void add_pipeline_options(CLI::App& command, Arguments& arguments) {
  const auto number = [&](const char* name, auto& value, const char* text, int low, int high) {
    command.add_option(name, value, text)->type_name("N")->capture_default_str()->check(between(low, high));
  };
  number("--batch-size", arguments.batch_size, "Samples per batch", 1, 1 << 20);
  number("--workers", arguments.workers, "Worker threads; 0 = one per usable core", 0, 4096);
  number("--prefetch", arguments.prefetch, "Host slots: batches made ahead", 1, 1024);
  number("--micro-batches", arguments.micro_batches, "Parts in which a batch is copied", 1, 1 << 20);
  number("--size", arguments.size, "Output width and height of the recipes train and eval", 1, 8192);
  command
      .add_option("--recipe", arguments.recipe, "train (random resized crop, flip), eval (resize, centre crop) or a JSON file")
      ->type_name("NAME|FILE.json")
      ->capture_default_str();
  command.add_option("--seed", arguments.seed, "Seed of order and augmentation")->type_name("N")->capture_default_str();
  command.add_option("--device", arguments.device, "Where batches end up: host")
      ->type_name("NAME")
      ->capture_default_str()
      ->check(CLI::IsMember({"host"}).description(""));
}

/// Options of the measurement.
void add_measuring_options(CLI::App& command, Arguments& arguments) {
  command
      .add_option("--step-ms", arguments.step_ms,
                  "Length of the synthetic training step in ms; 0 = none, auto = 1.25 x the loader's own time per batch")
      ->type_name("MS|auto")
      ->capture_default_str()
      ->check(CLI::Validator(check_step, ""));
  auto* batches = command.add_option("--batches", arguments.batches, "Measure so many batches")
                      ->type_name("N")
                      ->check(between(std::uint64_t{1}, std::uint64_t{1} << 40));
  command.add_option("--seconds", arguments.seconds, "Measure for so long")
      ->type_name("S")
      ->capture_default_str()
      ->check(between(0.01, 86400.0))
      ->excludes(batches);
  command.add_option("--warmup", arguments.warmup, "Batches before measuring begins")
      ->type_name("N")
      ->capture_default_str()
      ->check(between(0, 1 << 30));
  command.add_option("--json", arguments.json, "Write everything as JSON to a file; - prints it instead of the table")
      ->type_name("FILE");
  command.add_flag("--ceiling", arguments.ceiling,
                   "Also compare with libjpeg-turbo's plain full decode on as many threads (25 s more)");
  command.add_flag("--digest", arguments.digest, "Print the XXH3-64 of all batches from the first one on, warm-up included")
      ->needs(batches);
}

}  // namespace

Command add_bench(CLI::App& millrace) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = millrace.add_subcommand("bench", "Measure how fast a dataset is made into batches, and what bounds it");
  command->add_option("DATASET", arguments->dataset, "Dataset file that `millrace pack` wrote")->required();
  add_pipeline_options(*command, *arguments);
  add_measuring_options(*command, *arguments);
  command->footer(
      "Examples:\n"
      "  millrace bench train.lmdb                                   as fast as it goes, 5 s\n"
      "  millrace bench train.lmdb --step-ms 30 --batch-size 256     does it feed a step of 30 ms?\n"
      "  millrace bench train.lmdb --step-ms auto --batches 400      device idle with a step just slower than the loader\n"
      "  millrace bench train.lmdb --ceiling --json result.json      beside plain libjpeg-turbo, for the records\n"
      "  millrace bench train.lmdb --batches 40 --warmup 0 --digest  do two machines make the same batches?");
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace millrace::cli
