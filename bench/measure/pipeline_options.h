// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/decode_budget.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "console/dataset_option.h"
#include "measure/run_setup.h"

namespace millrace::cli {

/// What is read and made, as given on the command line: common to the commands that run a pipeline.
struct SourceArguments {
  DatasetArguments dataset;
  /// "auto", "image" or "raw".
  std::string transform = "auto";
  std::string recipe = "train";
  std::optional<int> size;
  std::uint64_t seed = 0;
  std::string device = "host";
  /// What a host device copies at most, to imitate a bus; 0 = as fast as the memory.
  double copy_gb_per_second = 0;
  /// "DTYPE[:LAYOUT]"; empty = images stay as they are.
  std::string convert;
  DecodeLimits limits{};
  std::optional<std::size_t> index_bytes;
  std::size_t cache_bytes = 0;
};

/// How the pipeline is set, as given on the command line; what is not there comes from the options
/// file or is the default.
struct PipelineArguments {
  std::optional<std::size_t> batch_size;
  /// "auto" or a number.
  std::optional<std::string> workers;
  std::optional<std::size_t> prefetch;
  std::optional<std::size_t> micro_batches;
  /// An options file that `millrace tune --out` wrote; empty = none.
  std::string config;
};

/// --max-pixels, --max-pixels-per-byte, --max-scan-pixels, --max-decode-bytes.
void add_decode_limits(CLI::App& command, DecodeLimits& limits);
/// --index-bytes, --cache-bytes
void add_kept_bytes(CLI::App& command, SourceArguments& arguments);
/// The dataset, --transform, --recipe, --size, --seed, --device, --convert, and the limits.
void add_source_arguments(CLI::App& command, SourceArguments& arguments);
/// --batch-size, --workers, --prefetch, --micro-batches, --config.
void add_pipeline_arguments(CLI::App& command, PipelineArguments& arguments);

/// For --step-ms: "auto" or milliseconds up to an hour; 0, no step, only if it may be none.
CLI::Validator step_check(bool may_be_none);
/// The step's time: of "auto" 1.25 x the loader's own time per batch, which is measured.
std::chrono::nanoseconds step_of(const std::string& step_ms, const BenchSettings& settings);

/// "float16", "bfloat16:nhwc" ... -> the conversion, with ImageNet's mean and standard deviation
/// unless it is to uint8. Throws `std::invalid_argument` for another text.
Conversion parse_conversion(const std::string& text);

/// What the recipe is called in results: its name, or that there is none.
std::string recipe_name(const SourceArguments& source, const BenchSettings& settings);
/// The arguments in words, and the machine that the settings' runtime is of.
RunSetup run_setup(const SourceArguments& source, const std::string& step_ms,
                   const BenchSettings& settings);

/// Opens the device and the dataset and reads the recipe, or takes fields as they are
/// (`raw_transform`) where there are no images or `--transform raw` is given; the pipeline has the
/// defaults and no runtime yet.
BenchSettings source_settings(const SourceArguments& arguments);
/// The same with the pipeline as the command line and the options file say, with a runtime. Says on
/// standard error if the options file is of another machine or recipe.
BenchSettings bench_settings(const SourceArguments& source, const PipelineArguments& pipeline);

}  // namespace millrace::cli
