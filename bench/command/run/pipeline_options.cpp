// SPDX-License-Identifier: Apache-2.0
#include "command/run/pipeline_options.h"

#include <fmt/core.h>
#include <millrace/detail/json_text.h>
#include <millrace/detail/seen_fields.h>
#include <millrace/image_transform.h>
#include <millrace/options_file.h>
#include <millrace/raw_transform.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <stdexcept>

#include "command/console/option_checks.h"
#include "command/console/recipe_option.h"
#include "command/console/streams.h"
#include "command/device/open_device.h"

namespace millrace::cli {
namespace {

constexpr const char* adaptive_workers = "auto";
constexpr unsigned max_workers = 4096;

std::string check_workers(const std::string& text) {
  if (text == adaptive_workers || parse_number<unsigned>(text).value_or(UINT_MAX) <= max_workers)
    return {};
  return must_be(fmt::format("\"auto\" or a number from 0 to {}", max_workers), text);
}

std::string check_conversion(const std::string& text) {
  try {
    parse_conversion(text);
    return {};
  } catch (const std::exception&) {
    return must_be("uint8, float16, bfloat16 or float32, with :nchw or :nhwc behind it or nothing",
                   text);
  }
}

std::string check_transform(const std::string& name) {
  return name == "auto" || name == "image" || name == "raw" ? std::string()
                                                            : must_be("auto, image or raw", name);
}

std::string check_decode(const std::string& place) {
  return place == "worker" || place == "device" ? std::string()
                                                : must_be("worker or device", place);
}

std::string check_device(const std::string& name) {
  return is_bench_device(name) ? std::string() : must_be("host or cuda:N, such as cuda:0", name);
}

/// Whether records become samples unchanged.
bool is_raw(const std::string& transform, const Dataset& dataset) {
  if (transform != "auto") return transform == "raw";
  const std::vector<std::string> fields = dataset.facts().fields;
  return !fields.empty() && std::ranges::count(fields, "image") == 0;
}

/// Makes a raw transform with the fields that the dataset describes, or else those of its records.
void set_raw_transform(BenchSettings& settings) {
  const Dataset& dataset = *settings.dataset;
  std::vector<RawField> fields;
  if (dataset.field_specs().empty())
    for (const FieldSpec& spec : seen_field_specs(dataset)) fields.push_back({.spec = spec});
  settings.transform = fields.empty() ? raw_transform(dataset) : raw_transform(fields);
  if (!fields.empty())
    settings.warnings.push_back(
        dataset.name() + ": the dtypes of the fields are not known; samples have the stored bytes");
}

/// Uses ImageNet's mean and std if the images have 3 channels.
void normalise_images(const SampleSpec& samples, Conversion& conversion) {
  if (conversion.dtype == DType::uint8) return;
  const auto image = std::ranges::find(samples.fields(), conversion.field, &FieldSpec::name);
  if (image == samples.fields().end()) return;  // the pipeline refuses the missing field
  const Shape& shape = image->shape;
  if (shape.rank() == 0 || shape[shape.rank() - 1] != 3) return;
  conversion.mean = Conversion::imagenet_mean;
  conversion.std = Conversion::imagenet_std;
}

/// Applies an options file, and warns where it may not fit. Returns its number of workers.
unsigned apply_config(const std::string& path, BenchSettings& settings) {
  const LoadedOptions loaded = load_options(path);
  if (settings.transform_of_share && !loaded.tuned_for.recipe.empty()) {
    settings.transform = settings.transform_of_share(
        Recipe::from_json(loaded.tuned_for.recipe, path + ": tuned_for.recipe").device_share);
    settings.recipe = settings.transform->description();
  }
  for (const std::string& difference : loaded.machine_differences)
    settings.warnings.push_back(
        fmt::format("{}: tuned on another machine: {}; `millrace tune` finds what is best here",
                    path, difference));
  if (!loaded.tuned_for.recipe.empty() && loaded.tuned_for.recipe != settings.recipe)
    settings.warnings.push_back(
        fmt::format("{}: tuned for another recipe: {}", path, cut(loaded.tuned_for.recipe)));
  for (const std::string& warning : settings.warnings) print_note(warning);
  settings.pipeline.batch_size = loaded.pipeline.batch_size;
  settings.pipeline.slots.prefetch = loaded.pipeline.slots.prefetch;
  settings.pipeline.slots.micro_batches = loaded.pipeline.slots.micro_batches;
  return loaded.workers;
}

}  // namespace

void add_decode_limits(CLI::App& command, DecodeLimits& limits) {
  const auto limit = [&](const char* name, std::uint64_t& value, const char* text) {
    return command.add_option(name, value, text)
        ->type_name("N")
        ->capture_default_str()
        ->check(CLI::PositiveNumber.description(""));
  };
  limit("--max-pixels", limits.max_pixels, "Images with more pixels are bad; at most 250000000");
  limit("--max-pixels-per-byte", limits.max_pixels_per_byte,
        "Images with more pixels per byte of their file are bad");
  limit("--max-scan-pixels", limits.max_scan_pixels, "Images with more pixels times scans are bad");
  limit("--max-decode-bytes", limits.max_decode_bytes,
        "Memory for all large images that are decoded at once (such as 500MB, 2GiB); an image that "
        "needs more alone is bad")
      ->default_str("512 MiB, or a quarter of the memory if that is less")
      ->transform(CLI::AsSizeValue(true).description(""));
}

void add_kept_bytes(CLI::App& command, SourceArguments& arguments) {
  command
      .add_option("--index-bytes", arguments.index_bytes,
                  "Memory for seek indices of images, which the first epoch makes to speed up "
                  "later ones (such as 500MB, 2GiB); 0 = none")
      ->type_name("N")
      ->default_str("a hundredth of the memory")
      ->transform(CLI::AsSizeValue(true).description(""));
  command
      .add_option(
          "--cache-bytes", arguments.cache_bytes,
          "Memory for a cache, so that later epochs need not decode images after resize and "
          "crop (such as 500MB, 2GiB);\n0 = no cache. Recipes with random crops cache the "
          "coefficients of JPEGs")
      ->type_name("N")
      ->capture_default_str()
      ->transform(CLI::AsSizeValue(true).description(""));
}

void add_source_arguments(CLI::App& command, SourceArguments& arguments) {
  add_dataset(command, arguments.dataset);
  command
      .add_option("--transform", arguments.transform,
                  "How samples are made from records: image = from the field \"image\" by the "
                  "recipe, raw = fields unchanged;\nauto = raw if records have no field \"image\"")
      ->type_name("auto|image|raw")
      ->capture_default_str()
      ->check(CLI::Validator(check_transform, ""));
  add_recipe(command, "--recipe", arguments.recipe, recipe_names())->capture_default_str();
  add_size(command, arguments.size);
  add_number(command, "--seed", arguments.seed, "Seed of order and augmentation", std::uint64_t{0},
             UINT64_MAX);
  command
      .add_option("--device", arguments.device, "Device for batches: host, or a GPU by its number")
      ->type_name("host|cuda:N")
      ->capture_default_str()
      ->check(CLI::Validator(check_device, ""));
  command
      .add_option("--convert", arguments.convert,
                  "Conversion of images on the device: uint8, float16, bfloat16 or float32 (with "
                  "ImageNet's mean and std\n"
                  "if they have 3 channels), nchw (the default) or nhwc; without it images stay "
                  "uint8, nhwc")
      ->type_name("DTYPE[:LAYOUT]")
      ->check(CLI::Validator(check_conversion, ""));
  command
      .add_option("--decode", arguments.decode,
                  "Where images are decoded: worker, or device = the device makes those of stored "
                  "or cached\ncoefficients; needs --convert")
      ->type_name("worker|device")
      ->default_str("worker")
      ->check(CLI::Validator(check_decode, ""));
  command
      .add_option("--decode-share", arguments.decode_share,
                  "With --decode device: share of the images that the device may make, 0 to 1, "
                  "spread evenly over each\nbatch; workers make the others")
      ->type_name("SHARE")
      ->default_str("1")
      ->transform(between(0.0, 1.0));
  add_decode_limits(command, arguments.limits);
}

void add_pipeline_arguments(CLI::App& command, PipelineArguments& arguments) {
  const BenchSettings defaults;
  const auto number = [&](const char* name, auto& value, const char* text, std::size_t standard,
                          int low, int high) {
    command.add_option(name, value, text)
        ->type_name("N")
        ->default_str(std::to_string(standard))
        ->transform(between(low, high));
  };
  number("--batch-size", arguments.batch_size, "Samples per batch", defaults.pipeline.batch_size, 1,
         1 << 20);
  command
      .add_option(
          "--workers", arguments.workers,
          "Worker threads; 0 = one per usable processor, less those left free to launch kernels;\n"
          "auto = the same number, of which only as many are active as keep batches ready")
      ->type_name("N|auto")
      ->default_str("0")
      ->check(CLI::Validator(check_workers, ""));
  number("--prefetch", arguments.prefetch, "Host slots: batches made ahead",
         defaults.pipeline.slots.prefetch, 1, 1024);
  number("--micro-batches", arguments.micro_batches, "Micro-batches in which a batch is copied",
         defaults.pipeline.slots.micro_batches, 1, 1 << 20);
  command
      .add_option(
          "--config", arguments.config,
          "Defaults of the four options above and of --decode-share, from a file that `millrace "
          "tune --out` wrote")
      ->type_name("FILE.json")
      ->check(input_check());
}

Conversion parse_conversion(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string dtype = text.substr(0, colon);
  Conversion conversion;
  const std::array dtypes = {DType::uint8, DType::float16, DType::bfloat16, DType::float32};
  const auto* const named =
      std::ranges::find_if(dtypes, [&](DType one) { return dtype == to_string(one); });
  if (named == dtypes.end()) throw std::invalid_argument(text);
  conversion.dtype = *named;
  const std::string layout = colon == std::string::npos ? "nchw" : text.substr(colon + 1);
  if (layout != "nchw" && layout != "nhwc") throw std::invalid_argument(text);
  conversion.layout = layout == "nchw" ? ImageLayout::nchw : ImageLayout::nhwc;
  return conversion;
}

CLI::Validator step_check(bool may_be_none) {
  const auto check = [may_be_none](const std::string& text) {
    const double step_ns = parse_number<double>(text).value_or(-1) * 1e6;
    if (text == "auto" || (step_ns >= (may_be_none ? 0 : 0.5) && step_ns <= 3.6e12))
      return std::string();
    return must_be(fmt::format("\"auto\" or milliseconds {}3600000",
                               may_be_none ? "from 0 to " : "above 0, up to "),
                   text);
  };
  return CLI::Validator(check, "");
}

std::chrono::nanoseconds step_of(const std::string& step_ms, const BenchSettings& settings) {
  /// Ratio of the step time of "auto" to the loader's time for a batch.
  constexpr double auto_step = 1.25;
  if (step_ms != "auto")
    return std::chrono::nanoseconds(std::llround(1e6 * parse_number<double>(step_ms).value()));
  return std::chrono::nanoseconds(
      std::llround(auto_step * static_cast<double>(measure_batch_time(settings).count())));
}

std::string recipe_name(const SourceArguments& source, const BenchSettings& settings) {
  return settings.recipe.empty() ? "none (raw)" : source.recipe;
}

RunSetup run_setup(const SourceArguments& source, const std::string& step_ms,
                   const BenchSettings& settings) {
  return {.dataset = source.dataset.path,
          .map = source.dataset.options.map,
          .recipe_name = recipe_name(source, settings),
          .device = source.device,
          .convert = source.convert,
          .step_is_auto = step_ms == "auto",
          .machine = describe_machine(settings.pipeline.runtime->topology())};
}

/// Throws `Error` (`invalid_argument`) if the device has to process images but does not convert
/// them.
void check_converted(const SourceArguments& arguments, const BenchSettings& settings) {
  const auto leaves_work = [](const FieldSpec& field) {
    return !field.device_stages.empty() || !field.flipped_image.empty() ||
           !field.erased_image.empty() || !field.mixed_image.empty();
  };
  if (settings.pipeline.conversion ||
      std::ranges::none_of(settings.transform->spec().fields(), leaves_work))
    return;
  const std::string who = arguments.decode == "device" ? "--decode device" : arguments.recipe;
  throw Error(ErrorCode::invalid_argument,
              who +
                  " leaves work on images to the device, which needs --convert, such as "
                  "--convert bfloat16:nhwc");
}

/// Loads the recipe, with --decode and --decode-share.
Recipe given_recipe(const SourceArguments& arguments) {
  Recipe recipe = load_recipe(arguments.recipe, arguments.size);
  if (arguments.decode)
    recipe.decode_on = *arguments.decode == "device" ? DecodeOn::device : DecodeOn::worker;
  if (!arguments.decode_share) return recipe;
  recipe.device_share = *arguments.decode_share;
  if (recipe.decode_on != DecodeOn::device)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--decode-share {:g} is a share of images for the device, and workers "
                            "make all images; add --decode device",
                            *arguments.decode_share));
  return recipe;
}

BenchSettings source_settings(const SourceArguments& arguments) {
  BenchSettings settings;
  const Recipe recipe = given_recipe(arguments);
  settings.device = open_bench_device(arguments.device, 1e9 * arguments.copy_gb_per_second);
  if (!arguments.convert.empty())
    settings.pipeline.conversion = parse_conversion(arguments.convert);
  settings.dataset = open_as_given(arguments.dataset);
  if (is_raw(arguments.transform, *settings.dataset)) {
    set_raw_transform(settings);
  } else {
    const Recipe fitted = recipe_for(recipe, *settings.dataset);
    settings.transform = image_transform(fitted, arguments.limits);
    check_converted(arguments, settings);
    settings.recipe = fitted.to_json();
    if (recipe.decode_on == DecodeOn::device && !arguments.decode_share)
      settings.transform_of_share = [fitted, limits = arguments.limits](double share) {
        Recipe shared = fitted;
        shared.device_share = share;
        return image_transform(shared, limits);
      };
  }
  if (settings.pipeline.conversion)
    normalise_images(settings.transform->spec(), *settings.pipeline.conversion);
  settings.pipeline.seed = arguments.seed;
  settings.pipeline.index_bytes = arguments.index_bytes;
  settings.pipeline.cache_bytes = arguments.cache_bytes;
  return settings;
}

BenchSettings bench_settings(const SourceArguments& source, const PipelineArguments& pipeline) {
  BenchSettings settings = source_settings(source);
  const unsigned tuned_workers =
      pipeline.config.empty() ? 0 : apply_config(pipeline.config, settings);
  settings.pipeline.batch_size = pipeline.batch_size.value_or(settings.pipeline.batch_size);
  settings.pipeline.slots.prefetch = pipeline.prefetch.value_or(settings.pipeline.slots.prefetch);
  settings.pipeline.slots.micro_batches =
      pipeline.micro_batches.value_or(settings.pipeline.slots.micro_batches);
  const std::string workers = pipeline.workers.value_or(std::to_string(tuned_workers));
  const bool adaptive = workers == adaptive_workers;
  settings.pipeline.runtime = make_runtime(
      {.workers = adaptive ? 0 : parse_number<unsigned>(workers).value(), .adaptive = adaptive});
  return settings;
}

}  // namespace millrace::cli
