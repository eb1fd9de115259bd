// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <millrace/detail/stored_hints.h>
#include <millrace/error.h>
#include <millrace/recipe.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command/console/command.h"
#include "command/console/option_checks.h"
#include "command/console/output_file.h"
#include "command/console/streams.h"
#include "command/run/ceiling.h"
#include "command/run/pipeline_options.h"
#include "command/run/reduced_quality.h"
#include "measure/bench/bench_output.h"

namespace millrace::cli {
namespace {

/// Arguments of the command line.
struct BenchArguments {
  SourceArguments source;
  PipelineArguments pipeline;
  std::string step_ms = "0";
  /// A step "gemm:N"; empty = none of this kind.
  std::string step;
  std::uint64_t epochs = 0;
  std::uint64_t batches = 0;
  double seconds = 5;
  /// Number of warm-up batches. nullopt = the default: 10, or 0 if whole epochs are measured.
  std::optional<std::uint64_t> warmup;
  std::string json;
  std::string html;
  std::string trace;
  bool ceiling = false;
  double ceiling_seconds = 60;
  bool digest = false;
  bool save_index = false;
};

constexpr std::string_view gemm_prefix = "gemm:";
constexpr std::size_t max_rows = 65536;

/// Parses "gemm:4096" as 4096; 0 for any other text.
std::size_t parse_gemm(std::string_view text) {
  return text.starts_with(gemm_prefix)
             ? parse_number<std::size_t>(text.substr(gemm_prefix.size())).value_or(0)
             : 0;
}

std::string check_gemm(const std::string& text) {
  const std::size_t rows = parse_gemm(text);
  return rows >= 1 && rows <= max_rows
             ? std::string()
             : must_be(fmt::format("gemm:N with N from 1 to {}", max_rows), text);
}

/// Throws a usage error for a combination of options that is not allowed.
void check_together(const BenchArguments& arguments) {
  const bool host = arguments.source.device == "host";
  if (arguments.digest && arguments.batches == 0 && arguments.epochs == 0)
    throw CLI::RequiresError("--digest", "--batches or --epochs");
  if (host && !arguments.step.empty())
    throw CLI::ValidationError(
        "--step", "a step of matrices needs a GPU (--device cuda:N); the host has --step-ms");
  if (!host && arguments.source.copy_gb_per_second > 0)
    throw CLI::ValidationError(
        "--copy-gb-s", "only the host imitates a bus; " + arguments.source.device + " has its own");
}

int run(const BenchArguments& arguments) {
  check_outputs({arguments.json, arguments.html, arguments.trace},
                {arguments.source.recipe, arguments.pipeline.config});
  BenchRecord record;
  BenchSettings& settings = record.settings;
  settings = bench_settings(arguments.source, arguments.pipeline);
  static_cast<RunSetup&>(record) = run_setup(arguments.source, arguments.step_ms, settings);
  if (arguments.ceiling && settings.recipe.empty())
    throw Error(ErrorCode::invalid_argument,
                "--ceiling compares with libjpeg-turbo's decode of images, but these samples have "
                "no images");
  if (arguments.ceiling) check_ceiling_images(*settings.dataset);
  if (arguments.epochs > 0 && settings.dataset->size() < settings.pipeline.batch_size)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: the batch size is {}, more than the dataset's {} records, so an "
                            "epoch has no whole batch; take a smaller --batch-size, or --batches "
                            "instead of --epochs",
                            arguments.source.dataset.path, settings.pipeline.batch_size,
                            settings.dataset->size()));
  settings.warmup = arguments.warmup.value_or(arguments.epochs > 0 ? 0 : 10);
  settings.epochs = arguments.epochs;
  settings.batches = arguments.batches;
  settings.duration = std::chrono::nanoseconds(std::llround(arguments.seconds * 1e9));
  settings.digest = arguments.digest;
  settings.step = step_of(arguments.step_ms, settings);
  if (!arguments.step.empty()) settings.gemm = parse_gemm(arguments.step);
  const std::shared_ptr<const Trace> trace =
      measure_bench(record, !arguments.html.empty() || !arguments.trace.empty());
  if (!settings.recipe.empty())
    record.reduced = measure_reduced_quality(settings, Recipe::from_json(settings.recipe),
                                             arguments.source.limits);
  if (arguments.ceiling) {
    // The reference decode T compares no checksums; only the loader compares them.
    DatasetArguments unchecked = arguments.source.dataset;
    unchecked.options.verify_checksums = false;
    record.ceiling =
        measure_ceiling(settings, *open_as_given(unchecked), arguments.ceiling_seconds);
  }

  if (arguments.json != "-") print_text(to_text(record));
  if (!arguments.json.empty()) write_text(arguments.json, to_json(record));
  if (!arguments.html.empty()) write_text(arguments.html, to_html(record, *trace));
  if (!arguments.trace.empty()) trace->write_json(std::filesystem::path(arguments.trace));
  if (arguments.save_index)
    print_note(fmt::format("saved the index of {} of {} records",
                           save_hints(settings.dataset, *settings.pipeline.runtime),
                           settings.dataset->size()));
  return 0;
}

/// Adds the options of the measurement.
void add_measuring_options(CLI::App& command, BenchArguments& arguments) {
  auto* step_ms = command
                      .add_option("--step-ms", arguments.step_ms,
                                  "Length of the synthetic training step in ms; 0 = no step, auto "
                                  "= 1.25 x the loader's own time per batch")
                      ->type_name("MS|auto")
                      ->capture_default_str()
                      ->check(step_check(true));
  command
      .add_option("--step", arguments.step,
                  "The step is a real load for a GPU: the product of two N x N bfloat16 matrices, "
                  "by cuBLAS")
      ->type_name("gemm:N")
      ->check(CLI::Validator(check_gemm, ""))
      ->excludes(step_ms);
  auto* batches =
      command.add_option("--batches", arguments.batches, "Number of batches to measure")
          ->type_name("N")
          ->transform(between(std::uint64_t{1}, std::uint64_t{1} << 40));
  auto* epochs =
      command
          .add_option("--epochs", arguments.epochs,
                      "Number of epochs to measure, without a warm-up; prints the rate of each")
          ->type_name("N")
          ->transform(between(std::uint64_t{1}, std::uint64_t{1} << 20))
          ->excludes(batches);
  add_number(command, "--seconds", arguments.seconds, "Time to measure, in seconds", 0.01, 86400.0,
             "S")
      ->excludes(batches)
      ->excludes(epochs);
  command.add_option("--warmup", arguments.warmup, "Batches before measuring begins")
      ->type_name("N")
      ->default_str("10")
      ->transform(between(0, 1 << 30))
      ->excludes(epochs);
  command
      .add_option("--json", arguments.json,
                  "Write everything as JSON to a file; - prints it instead of the table")
      ->type_name("FILE")
      ->check(output_check(true));
  command
      .add_option("--html", arguments.html,
                  "Write a page for people: the verdict, timeline, stages and stalls, in one file")
      ->type_name("FILE")
      ->check(output_check(false));
  command
      .add_option("--trace", arguments.trace,
                  "Write every span of every worker, thread, copy and step, for ui.perfetto.dev or "
                  "chrome://tracing")
      ->type_name("FILE")
      ->check(output_check(false));
  add_number(command, "--copy-gb-s", arguments.source.copy_gb_per_second,
             "Limit of copies in 10^9 bytes per second, to imitate a bus on the host; 0 = no limit",
             0.0, 10000.0, "RATE");
  CLI::Option* ceiling =
      command.add_flag("--ceiling", arguments.ceiling,
                       "Also compare with libjpeg-turbo's plain full decode on as many threads");
  add_number(command, "--ceiling-seconds", arguments.ceiling_seconds,
             "Time after which --ceiling measures no further pair of windows, once it has 20", 0.0,
             3600.0, "SECONDS")
      ->needs(ceiling);
  command.add_flag("--save-index", arguments.save_index,
                   "Store the seek indices that were made beside the dataset, as `millrace index` "
                   "does for all images");
  command.add_flag("--digest", arguments.digest,
                   "Print the XXH3-64 of all batches from the first one on, warm-up included");
}

}  // namespace

Command add_bench(CLI::App& millrace) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command = millrace.add_subcommand(
      "bench", "Measure how fast a dataset is made into batches, and what bounds it");
  add_source_arguments(*command, arguments->source);
  add_kept_bytes(*command, arguments->source);
  add_pipeline_arguments(*command, arguments->pipeline);
  add_measuring_options(*command, *arguments);
  command->callback([arguments] { check_together(*arguments); });
  command->footer(
      R"(Examples:
  millrace bench train.lmdb                                   as fast as it goes, 5 s
  millrace bench train.lmdb --step-ms 30 --batch-size 256     does it feed a step of 30 ms?
  millrace bench train.lmdb --step-ms auto --batches 400      device idle with a step just slower
                                                              than the loader
  millrace bench train.lmdb --config train.json               with the setting of `millrace tune`
  millrace bench train.lmdb --step-ms 30 --html result.html   a page with charts
  millrace bench train.lmdb --batches 200 --trace trace.json  every span, for ui.perfetto.dev
  millrace bench train.lmdb --workers auto --step-ms 30       the fewest workers that keep batches
                                                              ready
  millrace bench train.lmdb --epochs 3                        how much faster are the later epochs?
  millrace bench train.lmdb --ceiling --json result.json      compared with plain libjpeg-turbo
  millrace bench train.lmdb --batches 40 --warmup 0 --digest  do two machines make equal batches?
  millrace bench train.lmdb --device cuda:0 --convert bfloat16:nhwc --step-ms 30    on a GPU
  millrace bench train.lmdb --device cuda:0 --step gemm:8192             a real load as step

Also measured after the run: the same steps without a loader (as many, for 10 s at most), plain
copies of the same size, and with --micro-batches how much earlier the first step begins when the
trainer computes on micro-batches as they come.)");
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace millrace::cli
