// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <millrace/error.h>
#include <millrace/geometry.h>
#include <millrace/image_transform.h>

#include <algorithm>
#include <array>
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command/console/command.h"
#include "command/console/option_checks.h"
#include "command/console/output_file.h"
#include "command/console/recipe_option.h"
#include "command/console/streams.h"
#include "command/dataset/images/pack_image.h"
#include "command/image/made_image.h"
#include "command/run/pipeline_options.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

constexpr std::array filters{"bilinear", "bicubic", "box", "hamming", "lanczos", "nearest"};
constexpr std::array versions{"pillow-13", "pillow-12"};

struct DecodeArguments {
  std::vector<std::string> files;
  std::string recipe;
  std::string crop;
  std::string size;
  std::string filter = filters.front();
  std::string like = versions.front();
  bool upright = false;
  std::uint64_t seed = 0;
  std::string png;
  std::string raw;
  bool sha256 = false;
  DecodeLimits limits{};
};

/// Parses numbers such as "10,20,300,200"; nullopt for any other text.
template <std::size_t count>
std::optional<std::array<int, count>> numbers_of(const std::string& text, char separator) {
  std::array<int, count> numbers{};
  const std::vector<std::string> parts = CLI::detail::split(text, separator);
  if (parts.size() != count) return {};
  for (std::size_t n = 0; n < count; ++n) {
    const auto number = parse_number<unsigned>(parts[n]);
    if (!number || *number > 65535) return {};
    numbers[n] = static_cast<int>(*number);
  }
  return numbers;
}

std::optional<Region> crop_of(const std::string& text) {
  const auto numbers = numbers_of<4>(text, ',');
  if (!numbers || (*numbers)[2] < 1 || (*numbers)[3] < 1) return {};
  return Region{(*numbers)[0], (*numbers)[1], (*numbers)[2], (*numbers)[3]};
}

std::optional<Size> size_of(const std::string& text) {
  const auto numbers = numbers_of<2>(text, 'x');
  if (!numbers || (*numbers)[0] < 1 || (*numbers)[1] < 1) return {};
  return Size{(*numbers)[0], (*numbers)[1]};
}

template <typename Value, typename Names>
Value named(const std::string& name, const Names& names) {
  return static_cast<Value>(std::ranges::find(names, name) - names.begin());
}

/// Returns the recipe for the options.
Recipe recipe_of(const DecodeArguments& arguments, Size image) {
  if (!arguments.recipe.empty()) return load_recipe_for_host(arguments.recipe);
  const Region box = crop_of(arguments.crop).value_or(Region{0, 0, image.width, image.height});
  Recipe recipe{.output = size_of(arguments.size).value_or(Size{box.width, box.height}),
                .ops = {ResizedCrop{box, named<Interpolation>(arguments.filter, filters)}},
                .like = named<Like>(arguments.like, versions)};
  if (arguments.upright) recipe.ops.insert(recipe.ops.begin(), ExifTranspose{});
  return recipe;
}

/// Copies a box of the upright image. The sides of the box are not limited, unlike those of a
/// recipe's output.
Status copy_box(ImageDecoder& decoder, std::span<const std::byte> bytes, const Region& box,
                Turn turn, MadeImage& made) {
  if (Status opened = decoder.open(bytes); !opened.is_ok()) return opened;
  const Size upright = turned(decoder.header().size(), turn);
  if (box.x > upright.width - box.width || box.y > upright.height - box.height)
    return Status::bad(fmt::format("box {} x {} at ({}, {}) is not inside an image of {} x {}",
                                   box.width, box.height, box.x, box.y, upright.width,
                                   upright.height));
  PixelView view;
  if (Status read = decoder.decode(stored_region(box, upright, turn), view); !read.is_ok())
    return read;
  made.size = {box.width, box.height};
  made.rgb.clear();
  made.rgb.reserve(std::size_t{3} * static_cast<std::size_t>(box.width) *
                   static_cast<std::size_t>(box.height));
  for (int y = 0; y < box.height; ++y)
    for (int x = 0; x < box.width; ++x) {
      const Region at = stored_region({x, y, 1, 1}, made.size, turn);
      const std::uint8_t* const pixel = view.pixels + static_cast<std::size_t>(at.y) * view.stride +
                                        std::size_t{3} * static_cast<std::size_t>(at.x);
      made.rgb.insert(made.rgb.end(), pixel, pixel + 3);
    }
  decoder.close();
  return Status::ok();
}

std::string description(const ImageHeader& header, const ImageInfo& info, const Recipe& recipe,
                        const MadeImage& made) {
  std::string text = table_row(
      "image", fmt::format("{}, {} x {} pixels, {}, {}", to_string(header.kind), header.width,
                           header.height, info.scan_type, info.chroma.value_or("no chroma")));
  text += table_row("decoder", header.decoder);
  const bool turned = recipe.ops.front() == Operation(ExifTranspose{});
  text += table_row("EXIF orientation", info.orientation
                                            ? fmt::format("{}, {}", *info.orientation,
                                                          turned ? "turned upright" : "not turned")
                                            : "none");
  text += table_row("recipe", recipe.to_json());
  return text +
         table_row("made", fmt::format("{} x {} pixels, RGB", made.size.width, made.size.height));
}

void decode(const DecodeArguments& arguments, const std::string& file, ImageDecoder& decoder) {
  const auto check = [&](const Status& status) {
    if (!status.is_ok()) throw Error(ErrorCode::bad_record, file + ": " + status.reason());
  };
  const CheckedImage image = check_image({.file = file}, decoder);
  check(image.status);
  ImageInfo info;
  check(read_image_info(image.bytes, info));
  const Turn turn = arguments.upright ? turn_of(info.orientation.value_or(1)) : Turn{};
  Recipe recipe = recipe_of(arguments, turned(image.header.size(), turn));
  recipe.targets.clear();  // An image file has no targets.
  MadeImage made;
  const bool is_resized = !arguments.recipe.empty() || !arguments.size.empty();
  if (!is_resized && std::max(recipe.output.width, recipe.output.height) > longest_made_side) {
    const Region whole{0, 0, recipe.output.width, recipe.output.height};
    check(copy_box(decoder, image.bytes, crop_of(arguments.crop).value_or(whole), turn, made));
  } else {
    const std::array fields{RecordField{"image", image.bytes}};
    Random random(arguments.seed, 0);
    MadeSample sample;
    check(sample.make(*image_transform(recipe, arguments.limits), Record(0, fields), random));
    made = sample.image();
  }

  if (!arguments.png.empty()) write_text(arguments.png, png_of(made));
  if (!arguments.raw.empty())
    write_text(arguments.raw, {reinterpret_cast<const char*>(made.rgb.data()), made.rgb.size()});
  if (arguments.png == "-" || arguments.raw == "-") return;
  std::string text = printable(file) + "\n" + description(image.header, info, recipe, made);
  if (arguments.sha256) text += table_row("sha256", sha256_of(made));
  for (const std::string& out : {arguments.png, arguments.raw})
    if (!out.empty()) text += table_row("written to", printable(out));
  print_text(text);
}

/// Decodes all files. Reports a file that does not decode, and continues with the others.
int run(const DecodeArguments& arguments) {
  check_outputs({arguments.png, arguments.raw}, arguments.files);
  const auto decoders = make_decoders(1, arguments.limits);
  int code = 0;
  for (const std::string& file : arguments.files) try {
      decode(arguments, file, *decoders->all.front());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_record) throw;
      print_note(error.what());
      code = 1;
    }
  return code;
}

template <typename Parse>
CLI::Validator parsed_by(const Parse& parse, const char* what) {
  return CLI::Validator(
      [parse, what](const std::string& text) {
        return parse(text) ? std::string() : must_be(what, text);
      },
      "");
}

template <typename Names>
CLI::Validator one_of(const Names& names) {
  return CLI::Validator(
      [&names](const std::string& text) {
        if (std::ranges::find(names, text) != names.end()) return std::string();
        return must_be(fmt::format("{}", fmt::join(names, " or ")), text);
      },
      "");
}

}  // namespace

Command add_decode(CLI::App& millrace) {
  auto arguments = std::make_shared<DecodeArguments>();
  CLI::App* app = millrace.add_subcommand("decode", "Decode an image file and describe the result");
  app->add_option("FILE", arguments->files, "Encoded images")->required()->check(input_check());
  CLI::Option* recipe = add_recipe(*app, "--recipe", arguments->recipe,
                                   "Run train, eval or the recipe of a JSON file, instead of "
                                   "--crop, --size, --filter and --upright");
  const auto part = [&](const char* name, auto& value, const char* text) {
    return app->add_option(name, value, text)->excludes(recipe);
  };
  part("--crop", arguments->crop, "Decode only this box of the image; default: the whole image")
      ->type_name("X,Y,W,H")
      ->check(parsed_by(crop_of, "x,y,width,height in pixels"));
  part("--size", arguments->size, "Size to resize to; default: no resizing")
      ->type_name("WxH")
      ->check(parsed_by(size_of, "WIDTHxHEIGHT in pixels"));
  part("--filter", arguments->filter, "The filter of --size, by Pillow's names")
      ->type_name("NAME")
      ->capture_default_str()
      ->check(one_of(filters));
  part("--like", arguments->like, "The version of Pillow whose pixels --size makes")
      ->type_name("NAME")
      ->capture_default_str()
      ->check(one_of(versions));
  app->add_flag("--upright", arguments->upright,
                "Turn the image upright by its EXIF orientation, before --crop")
      ->excludes(recipe);
  add_number(*app, "--seed", arguments->seed, "Seed of a recipe's random numbers", std::uint64_t{0},
             UINT64_MAX)
      ->needs(recipe);
  CLI::Option* png = app->add_option("--png", arguments->png, "Write a PNG file; - is stdout")
                         ->type_name("FILE")
                         ->check(output_check(true));
  app->add_option("--raw", arguments->raw, "Write the RGB rows, 8 bits, no gaps; - is stdout")
      ->type_name("FILE")
      ->check(output_check(true))
      ->excludes(png);
  app->add_flag("--sha256", arguments->sha256, "Print the SHA-256 of the RGB rows");
  add_decode_limits(*app, arguments->limits);
  app->callback([arguments] {
    if (arguments->files.size() > 1 && !(arguments->png.empty() && arguments->raw.empty()))
      throw CLI::ValidationError("--png and --raw write one image, so there must be one FILE");
  });
  app->footer(
      R"(Decodes the whole image, as `pack` does, and makes pixels as a pipeline's workers do.
Files that do not decode are named; the others are still decoded, and the exit code is 1.

Examples:
  millrace decode cat.jpg
  millrace decode cat.jpg --upright --crop 10,20,300,200 --size 224x224 --sha256
  millrace decode cat.jpg --recipe eval --png cat.png
  millrace decode *.jpg --size 64x64 --filter bicubic --sha256)");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace millrace::cli
