// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/decode_budget.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "command/console/dataset_option.h"
#include "measure/bench/run_setup.h"

namespace millrace::cli {

/// Source arguments of all commands that run a pipeline: dataset, transform and device.
struct SourceArguments {
  DatasetArguments dataset;
  /// "auto", "image" or "raw".
  std::string transform = "auto";
  std::string recipe = "train";
  std::optional<int> size;
  std::uint64_t seed = 0;
  std::string device = "host";
  /// Maximum copy rate of a host device, to imitate a bus; 0 = unlimited.
  double copy_gb_per_second = 0;
  /// "DTYPE[:LAYOUT]"; empty = no conversion.
  std::string convert;
  /// "worker" or "device"; nullopt = as the recipe says.
  std::optional<std::string> decode;
  /// `Recipe::device_share`; nullopt = as the recipe says.
  std::optional<double> decode_share;
  DecodeLimits limits{};
  std::optional<std::size_t> index_bytes;
  std::size_t cache_bytes = 0;
};

/// Pipeline arguments. Missing ones come from the options file, or else are the defaults.
struct PipelineArguments {
  std::optional<std::size_t> batch_size;
  /// "auto" or a number.
  std::optional<std::string> workers;
  std::optional<std::size_t> prefetch;
  std::optional<std::size_t> micro_batches;
  /// Path of an options file written by `millrace tune --out`; empty = none.
  std::string config;
};

/// Adds --max-pixels, --max-pixels-per-byte, --max-scan-pixels, --max-decode-bytes.
void add_decode_limits(CLI::App& command, DecodeLimits& limits);
/// Adds --index-bytes, --cache-bytes.
void add_kept_bytes(CLI::App& command, SourceArguments& arguments);
/// Adds the dataset, --transform, --recipe, --size, --seed, --device, --convert, and the limits.
void add_source_arguments(CLI::App& command, SourceArguments& arguments);
/// Adds --batch-size, --workers, --prefetch, --micro-batches, --config.
void add_pipeline_arguments(CLI::App& command, PipelineArguments& arguments);

/// Check for --step-ms: "auto" or milliseconds up to an hour. 0 (no step) passes only if
/// `may_be_none`.
CLI::Validator step_check(bool may_be_none);
/// Returns the step's time. For "auto" it measures the loader's own time per batch, and returns
/// 1.25 times that time.
std::chrono::nanoseconds step_of(const std::string& step_ms, const BenchSettings& settings);

/// Parses "float16", "bfloat16:nhwc" ... into a conversion with mean 0 and std 1. Throws
/// `std::invalid_argument` for another text.
Conversion parse_conversion(const std::string& text);

/// Name of the recipe in results; "none (raw)" without one.
std::string recipe_name(const SourceArguments& source, const BenchSettings& settings);
/// The arguments as in results, and the machine of the settings' runtime.
RunSetup run_setup(const SourceArguments& source, const std::string& step_ms,
                   const BenchSettings& settings);

/// Opens the device and the dataset and loads the recipe. Uses `raw_transform` if `--transform raw`
/// is given, or if records have no images. The pipeline has defaults and no runtime yet.
BenchSettings source_settings(const SourceArguments& arguments);
/// Like `source_settings`, but with a runtime, and with the pipeline as set by command line and
/// options file. Warns on standard error if the file belongs to another machine or recipe.
BenchSettings bench_settings(const SourceArguments& source, const PipelineArguments& pipeline);

}  // namespace millrace::cli
