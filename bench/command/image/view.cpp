// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <millrace/dataset.h>
#include <millrace/error.h>
#include <millrace/image_transform.h>

#include <algorithm>
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "command/console/command.h"
#include "command/console/dataset_option.h"
#include "command/console/option_checks.h"
#include "command/console/output_file.h"
#include "command/console/recipe_option.h"
#include "command/console/streams.h"
#include "command/dataset/inspect_output.h"
#include "command/image/drawn_targets.h"
#include "command/image/made_image.h"
#include "command/image/sheet.h"
#include "command/run/pipeline_options.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

struct ViewArguments {
  DatasetArguments dataset;
  std::string recipe = "train";
  std::optional<int> size;
  std::uint64_t record = 0;
  std::uint64_t samples = 6;
  std::uint64_t seed = 0;
  std::string png = "view.png";
  DecodeLimits limits{};
};

/// Makes samples of one record.
class Samples {
 public:
  Samples(const ViewArguments& arguments, const Dataset& dataset, const Record& record)
      : arguments_(arguments),
        record_(record),
        recipe_(recipe_for(load_recipe_for_host(arguments.recipe, arguments.size), dataset)),
        transform_(image_transform(recipe_, arguments.limits)) {
    if (!record.has("image"))
      throw Error(ErrorCode::not_found,
                  fmt::format("{}: record {} has no field \"image\" to draw; `millrace inspect "
                              "--record {}` shows its fields",
                              dataset.name(), record.index(), record.index()));
    check(read_image_info(record["image"], info_));
  }

  const ImageInfo& info() const { return info_; }

  /// Makes the sample at this position of a run.
  ShownSample sample(std::uint64_t position) const {
    ShownSample shown;
    Random random(arguments_.seed, position);
    shown.image = drawn(*transform_, random);
    Random same(arguments_.seed, position);
    shown.geometry = sample_geometry(recipe_, info_.size(), info_.orientation.value_or(1), same);
    return shown;
  }

  /// Returns the whole image, whose size is `size`. It is turned upright if the recipe does so. It
  /// is made smaller if a side is longer than a recipe's output can be.
  MadeImage original(Size size) const {
    const int by = (std::max(size.width, size.height) - 1) / longest_made_side + 1;
    const Size made{std::max(size.width / by, 1), std::max(size.height / by, 1)};
    Recipe recipe{
        .output = made, .ops = {Resize{.exact = made}, CenterCrop{}}, .targets = recipe_.targets};
    const Operation turn{ExifTranspose{}};
    if (recipe_.ops.front() == turn) recipe.ops.insert(recipe.ops.begin(), turn);
    Random random(0, 0);
    return drawn(*image_transform(recipe, arguments_.limits), random);
  }

 private:
  MadeImage drawn(const Transform& transform, Random& random) const {
    MadeSample sample;
    check(sample.make(transform, record_, random));
    return with_targets(sample, recipe_.targets);
  }

  void check(const Status& status) const {
    if (!status.is_ok()) throw Error(ErrorCode::bad_record, status.reason());
  }

  const ViewArguments& arguments_;
  const Record& record_;
  Recipe recipe_;
  std::shared_ptr<const Transform> transform_;
  ImageInfo info_;
};

std::string text_of(const ShownSample& sample, std::size_t number) {
  const SampleGeometry& shown = sample.geometry;
  return table_row(
      fmt::format("sample {}", number),
      fmt::format("{:.0f} x {:.0f} pixels at ({:.0f}, {:.0f}){}{}", shown.right - shown.left,
                  shown.bottom - shown.top, shown.left, shown.top,
                  shown.mirrored ? ", flipped" : "", shown.flipped ? ", upside down" : ""));
}

int run(const ViewArguments& arguments) {
  check_outputs({arguments.png}, {arguments.dataset.path, arguments.recipe});
  const auto dataset = open_as_given(arguments.dataset);
  const auto reader = dataset->make_reader();
  const Record record = reader->read(arguments.record);
  const std::string name =
      fmt::format("record {} ({})", arguments.record, printable(dataset->key(arguments.record)));
  std::vector<ShownSample> shown;
  std::string text = fmt::format("{} of {}\n", name, printable(dataset->name()));
  MadeImage original;
  Size size;
  try {
    const Samples samples(arguments, *dataset, record);
    for (std::uint64_t position = 0; position < arguments.samples; ++position)
      shown.push_back(samples.sample(position));
    size = shown.front().geometry.image;
    original = samples.original(size);
    text += table_row("size",
                      fmt::format("{} x {} pixels", samples.info().width, samples.info().height));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_record) throw;
    throw Error(ErrorCode::bad_record,
                fmt::format("{}: {}: {}", dataset->name(), name, error.reason()));
  }
  if (const Status intact = reader->intact(); !intact.is_ok())
    throw Error(ErrorCode::bad_record, fmt::format("{}: {}", name, intact.reason()));

  const std::string label = label_text(*dataset, record);
  write_text(arguments.png,
             png_of(draw_sheet({fmt::format("{}, {}", dataset->name(), name),
                                fmt::format("{}, {} x {}", label, size.width, size.height)},
                               original, shown)));
  if (arguments.png == "-") return 0;
  text += table_row("label", label);
  for (std::size_t number = 0; number < shown.size(); ++number)
    text += text_of(shown[number], number);
  print_text(text + table_row("written to", printable(arguments.png)));
  return 0;
}

}  // namespace

Command add_view(CLI::App& millrace) {
  auto arguments = std::make_shared<ViewArguments>();
  CLI::App* app =
      millrace.add_subcommand("view", "Draw samples of a record beside the image itself");
  add_dataset(*app, arguments->dataset);
  app->add_option("--record", arguments->record, "The record, from 0")
      ->required()
      ->transform(between(std::uint64_t{0}, UINT64_MAX));
  add_recipe(*app, "--recipe", arguments->recipe, recipe_names())->capture_default_str();
  add_size(*app, arguments->size);
  add_number(*app, "--samples", arguments->samples, "Number of samples to draw", 1, 64);
  add_number(*app, "--seed", arguments->seed, "Seed of augmentation", std::uint64_t{0}, UINT64_MAX);
  app->add_option("--png", arguments->png, "The PNG file to write; - is stdout")
      ->type_name("FILE")
      ->capture_default_str()
      ->check(output_check(true));
  add_decode_limits(*app, arguments->limits);
  app->footer(
      R"(Sample N is the record's sample at position N of a run with that seed. Each sample has a
colour: that of its box in the image and of its own frame. Masks, boxes and keypoints that are
targets of the recipe are drawn on the image and on samples, in a colour for each class.

Examples:
  millrace view train.lmdb --record 1234
  millrace view train.lmdb --record 1234 --recipe eval --samples 1 --png 1234.png
  millrace view train.lmdb --record 7 --recipe mine.json --seed 3)");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace millrace::cli
